"""evergrow export of a workspace for other software."""

import json

import numpy as np

from evergrow.export.onnx.comparison import OnnxAnswers


def test_a_workspace_becomes_an_onnx_file_that_answers_the_same(run, things, photos):
    run.ok(f"export {things} -o model.onnx")
    answers = OnnxAnswers("model.onnx")
    paths = sorted(photos.glob("*/*"))
    index, shares, score, is_unknown = answers.run(paths)
    lines = run.ok(f"predict {things} {photos} --json").stdout.splitlines()
    for k, told in enumerate(map(json.loads, lines)):
        assert told["known"] == (not is_unknown[k])
        assert told["top"][0]["name"] == answers.classes[index[k]]
        np.testing.assert_allclose(told["top"][0]["probability"], shares[k].max(), atol=1e-5)
        np.testing.assert_allclose(told["novelty"], score[k], atol=1e-3)
    assert answers.metadata["unknown_label"] == "unknown"


def test_a_workspace_without_examples_has_nothing_to_export(run, network):
    run.ok(f"init empty --features {network} -q")
    run.fails("export empty -o model.onnx", says="no examples yet")
