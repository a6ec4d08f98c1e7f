"""The image classifier: training, updates, forgetting."""

from __future__ import annotations

import copy
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evergrow import (
    BadImageWarning,
    ImageClassifier,
    ImageError,
    NCMClassifier,
    NCMForestClassifier,
    RejectingClassifier,
    RLSClassifier,
)
from evergrow.vision import find_images, find_labelled
from evergrow.vision.classifier.components import FEATURES, LEARNERS
from tests.vision.classifier.pictures import MeanColours, folder_of, pictures
from tests.vision.images.drawn import encoded

IMAGES, LABELS = pictures("red", "green", "blue")
NEW_IMAGES, NEW_LABELS = pictures("grey", "red", seed=50)
TEST_IMAGES, TEST_LABELS = pictures("red", "green", "blue", "grey", n=3, seed=100)

every_learner = pytest.mark.parametrize(
    "learner",
    [
        *LEARNERS,
        RLSClassifier(regularization=0.1, recoding=0.0),
        NCMClassifier(),
        NCMClassifier(metric="mahalanobis"),
        # With every sixth example held out there are too few of them to reject anything.
        RejectingClassifier(RLSClassifier(regularization=0.1, recoding=0.0), measure="cosine"),
        RejectingClassifier(
            NCMForestClassifier(5, min_samples_leaf=1, random_state=0), measure="cosine"
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)


def model_of(learner: Any = "rls", **options: Any) -> ImageClassifier:
    return ImageClassifier(MeanColours(), learner, random_state=0, **options)


@pytest.mark.slow
@pytest.mark.parametrize("features", sorted({*FEATURES} - {"auto", "embed"}))
def test_words_separate_classes_of_images(features: str) -> None:
    model = ImageClassifier(features, random_state=0).fit(IMAGES, LABELS)
    assert model.score(TEST_IMAGES[:9], TEST_LABELS[:9]) > 0.8


@every_learner
def test_new_classes_and_examples_are_learnt(learner: Any) -> None:
    model = model_of(learner).fit(IMAGES, LABELS).partial_fit(NEW_IMAGES, NEW_LABELS)
    assert model.classes_.tolist() == ["blue", "green", "red", "grey"]
    assert model.class_counts_.tolist() == [6, 6, 12, 6]
    assert model.score(TEST_IMAGES, TEST_LABELS) == 1.0


@every_learner
def test_a_forgotten_class_is_answered_no_more(learner: Any) -> None:
    model = model_of(learner).fit(IMAGES, LABELS).partial_fit(NEW_IMAGES, NEW_LABELS)
    model.forget(classes=["red"])
    assert model.classes_.tolist() == ["blue", "green", "grey"]
    assert model.class_counts_.tolist() == [6, 6, 6]
    assert "red" not in model.predict(TEST_IMAGES).tolist()


def test_forgetting_is_as_if_the_class_had_never_come() -> None:
    learner = RLSClassifier(regularization=0.1, recoding=0.0)
    model = model_of(learner).fit(IMAGES, LABELS).partial_fit(NEW_IMAGES, NEW_LABELS)
    model.forget(classes=["red"])
    # Six pictures of each colour, one colour after the other.
    other = model_of(learner).fit(IMAGES[6:], LABELS[6:])
    other.partial_fit(NEW_IMAGES[:6], NEW_LABELS[:6])
    np.testing.assert_allclose(
        model.predict_proba(TEST_IMAGES), other.predict_proba(TEST_IMAGES), atol=1e-6
    )


def test_without_stored_features_a_learner_reports_what_it_cannot_forget() -> None:
    model = model_of(keep_features=False).fit(IMAGES, LABELS)
    with pytest.raises(ValueError, match="cannot forget the classes"):
        model.forget(classes=["red"])
    assert model.classes_.tolist() == ["blue", "green", "red"]


@every_learner
def test_classes_can_be_renamed_and_joined(learner: Any) -> None:
    model = model_of(learner).fit(IMAGES, LABELS)
    model.rename_classes({"green": "blue", "red": "rot"})
    assert model.classes_.tolist() == ["blue", "rot"]
    assert model.class_counts_.tolist() == [12, 6]
    assert model.predict(TEST_IMAGES[:9]).tolist() == ["rot"] * 3 + ["blue"] * 6
    assert model.forget(classes=["rot"]).classes_.tolist() == ["blue"]


def test_a_folder_per_class_needs_no_labels(tmp_path: Path) -> None:
    train = folder_of(tmp_path / "train", "red", "green")
    more = folder_of(tmp_path / "more", "blue")
    model = model_of().fit(train).partial_fit(str(more))
    assert model.classes_.tolist() == ["green", "red", "blue"]
    assert model.score(folder_of(tmp_path / "test", "red", "blue", n=2, seed=9)) == 1.0


def numbered(root: Path, **names: str) -> Path:
    """A folder whose classes have numbers for names."""
    for colour, name in names.items():
        (folder_of(root, colour, n=3) / colour).rename(root / name)
    return root


def test_folders_are_called_like_classes_that_are_numbers(tmp_path: Path) -> None:
    model = model_of().fit(IMAGES, np.repeat([7, 2, 30], 6))
    assert model.score(numbered(tmp_path / "test", red="7", green="2")) == 1.0
    model.partial_fit(numbered(tmp_path / "more", grey="12", red="7"))
    assert model.classes_.tolist() == [2, 7, 30, 12]
    assert model.class_counts_.tolist() == [6, 9, 6, 3]


@pytest.mark.parametrize("name", ["cat", "07", "2.0"])
def test_a_model_with_integer_classes_refuses_folder_names_that_are_not_numbers(
    tmp_path: Path, name: str
) -> None:
    model = model_of().fit(IMAGES, np.repeat([7, 2, 30], 6))
    folder = numbered(tmp_path, red=name)
    for use in (model.score, model.partial_fit):
        with pytest.raises(TypeError, match="the known classes are numbers, 2, 7, 30;"):
            use(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_unreadable_things_in_folders_are_errors_unless_they_may_be_skipped(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "red", "green")
    model = model_of().fit(folder)
    (folder / "red" / "gone.jpg").symlink_to("nothing")
    for use in (model.fit, model.partial_fit, model.score):
        with pytest.raises(ImageError, match=r"gone\.jpg': a link to nothing"):
            use(folder)
    with pytest.warns(BadImageWarning, match=r"skipped in the search for images: .*gone\.jpg"):
        model.set_params(on_error="skip").fit(folder)


def test_a_folder_is_predicted_in_the_order_in_which_it_is_listed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "red", "green")
    model = model_of().fit(folder)
    paths = find_images(folder)
    for place in (folder, str(folder)):
        assert model.predict(place).tolist() == model.predict(paths).tolist()
        assert model.predict_proba(place).shape == (len(paths), 2)
        assert len(model.answer(place).labels) == len(paths)
        assert len(model.predict_top_k(place, 1)) == len(paths)
    found = find_labelled(folder)
    assert model.predict(found).tolist() == model.predict(found.paths).tolist()


@pytest.mark.slow
def test_open_files_are_read_once_and_learnt_from() -> None:
    def opened(images: list[Any]) -> list[Any]:
        return [io.BytesIO(encoded(image)) for image in images]

    model = ImageClassifier("hsl", random_state=0, on_error="skip")
    model.fit(opened(IMAGES), LABELS)
    same = ImageClassifier("hsl", random_state=0).fit(IMAGES, LABELS)
    np.testing.assert_array_equal(
        model.predict_proba(opened(TEST_IMAGES)), same.predict_proba(TEST_IMAGES)
    )


def test_an_open_file_that_is_not_an_image_is_named_with_the_reason() -> None:
    model = ImageClassifier("hsl", random_state=0)
    with pytest.raises(ImageError, match=r"^cannot read <StringIO>: .*binary mode$"):
        model.fit([*IMAGES, io.StringIO("text")], [*LABELS, "red"])


def test_the_report_shows_where_the_time_went() -> None:
    model = model_of().fit(IMAGES, LABELS)
    report = model.report_
    assert report is not None
    assert report.n_images == 18
    assert report.seconds_features > 0
    assert report.seconds_learning > 0
    assert report.problems == ()
    assert model.forget(classes=["red"]).report_ is None


def colours(images: list[Any]) -> Any:
    return np.array([image.mean(axis=(0, 1)) for image in images])


@pytest.mark.parametrize("features", [colours, make_pipeline(MeanColours(), StandardScaler())])
def test_a_function_or_a_pipeline_may_make_the_features(features: Any) -> None:
    model = ImageClassifier(features, random_state=0).fit(IMAGES, LABELS)
    assert model.score(TEST_IMAGES[:9], TEST_LABELS[:9]) == 1.0
    # What is given is cloned.
    assert features is colours or not hasattr(features[0], "first_")


def test_the_best_classes_come_first() -> None:
    model = model_of().fit(IMAGES, LABELS)
    answers = model.answer(TEST_IMAGES, k=3)
    assert answers.top_labels[:, 0].tolist() == answers.labels.tolist()
    assert (np.diff(answers.top_probabilities, axis=1) <= 0).all()
    np.testing.assert_array_equal(model.predict_top_k(TEST_IMAGES, 3), answers.top_labels)
    best = model.predict_proba(TEST_IMAGES).max(axis=1)
    np.testing.assert_array_equal(answers.top_probabilities[:, 0], best)
    # No more classes are given than there are.
    assert model.predict_top_k(TEST_IMAGES, 5).shape == (len(TEST_IMAGES), 3)


def test_a_rejecting_learner_may_answer_unknown() -> None:
    images, labels = pictures("red", "green", n=60)
    model = model_of(RejectingClassifier(NCMClassifier(), random_state=0)).fit(images, labels)
    answers = model.answer(TEST_IMAGES[6:9], k=2)
    assert answers.labels.tolist() == ["unknown"] * 3
    assert "unknown" not in answers.top_labels


@pytest.mark.slow
def test_threads_do_not_change_the_answer() -> None:
    models = [
        ImageClassifier("hsl", "forest", n_jobs=n_jobs, random_state=3).fit(IMAGES, LABELS)
        for n_jobs in (1, 2)
    ]
    first, second = (model.predict_proba(TEST_IMAGES) for model in models)
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_bars_and_threads_are_those_of_the_moment(capsys: pytest.CaptureFixture[str]) -> None:
    model = ImageClassifier("hsl", "forest", verbose=1, random_state=0).fit(IMAGES, LABELS)
    assert capsys.readouterr().err
    model.set_params(verbose=0).partial_fit(NEW_IMAGES, NEW_LABELS).predict(TEST_IMAGES)
    assert not capsys.readouterr().err


def bad_in_the_middle() -> tuple[list[Any], Any]:
    return [*IMAGES[:9], b"no image", *IMAGES[9:]], np.insert(LABELS, 9, "red")


@pytest.mark.slow
@pytest.mark.parametrize(
    "features", ["hsl", MeanColours(), make_pipeline(MeanColours(), StandardScaler())]
)
def test_bad_training_images_are_skipped_with_a_warning(features: Any) -> None:
    images, labels = bad_in_the_middle()
    model = ImageClassifier(features, on_error="skip", random_state=0)
    with pytest.warns(BadImageWarning, match="1 image was left out: <8 bytes>"):
        model.fit(images, labels)
    assert model.class_counts_.tolist() == [6, 6, 6]
    assert [problem.index for problem in model.report_.problems] == [9]
    clean = ImageClassifier(features, random_state=0).fit(IMAGES, LABELS)
    np.testing.assert_array_equal(
        model.predict_proba(TEST_IMAGES), clean.predict_proba(TEST_IMAGES)
    )


def test_bad_further_images_are_skipped_with_a_warning() -> None:
    model = model_of(on_error="skip").fit(IMAGES, LABELS)
    with pytest.warns(BadImageWarning, match="1 image was left out"):
        model.partial_fit([NEW_IMAGES[0], b"no image"], ["grey", "black"])
    assert model.classes_.tolist() == ["blue", "green", "red", "grey"]


def test_bad_images_are_an_error_unless_they_may_be_skipped() -> None:
    with pytest.raises(ImageError, match="cannot read <8 bytes>"):
        model_of().fit(*bad_in_the_middle())


@pytest.mark.slow
@pytest.mark.parametrize("features", [MeanColours(), "hsl"])
def test_one_error_names_all_bad_images(features: Any, tmp_path: Path) -> None:
    images = [*IMAGES, b"text", b"no image", tmp_path / "none.jpg"]
    labels = [*LABELS, "red", "red", "green"]
    model = ImageClassifier(features, random_state=0).fit(IMAGES, LABELS)
    uses: list[Any] = [model.fit, model.partial_fit, lambda images, _: model.predict(images)]
    for use in uses:
        with pytest.raises(ImageError, match=r"read <4 b.*; <8 b.*; .*none\.jpg") as caught:
            use(images, labels)
        assert [one.index for one in caught.value.more] == [len(IMAGES) + 1, len(IMAGES) + 2]


def test_an_error_names_bad_images_and_bad_links_of_a_folder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "red", "green")
    (folder / "red" / "gone.jpg").symlink_to("nothing")
    (folder / "green" / "bad.jpg").write_text("no image")
    with pytest.raises(ImageError, match=r"read .*gone\.jpg'.*; .*bad\.jpg'"):
        model_of().fit(folder)


def test_answer_can_skip_bad_images() -> None:
    model = model_of().fit(IMAGES, LABELS)
    asked = [TEST_IMAGES[0], b"no image", TEST_IMAGES[3]]
    with pytest.raises(ImageError):
        model.predict(asked)
    with pytest.warns(BadImageWarning):
        answers = model.answer(asked, on_error="skip")
    assert answers.labels.tolist() == ["red", "green"]
    assert answers.kept.tolist() == [0, 2]
    assert answers.problems[0].index == 1


def test_a_failed_update_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of().fit(IMAGES, LABELS)
    before, report = model.predict_proba(TEST_IMAGES), model.report_

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(RLSClassifier, "partial_fit", fail)
    with pytest.raises(MemoryError):
        model.partial_fit(NEW_IMAGES, NEW_LABELS)
    assert model.report_ is report
    np.testing.assert_array_equal(model.predict_proba(TEST_IMAGES), before)


def test_a_copy_learns_on_its_own() -> None:
    model = model_of().fit(IMAGES, LABELS)
    twin = copy.deepcopy(model).partial_fit(NEW_IMAGES, NEW_LABELS)
    assert len(twin.classes_) == 4
    assert len(model.classes_) == 3


def test_an_update_does_not_change_what_a_reader_holds() -> None:
    model = model_of().fit(IMAGES, LABELS)
    held = model.learner_
    model.partial_fit(NEW_IMAGES, NEW_LABELS).forget(classes=["blue"])
    model.rename_classes({"red": "rot"})
    assert held.classes_.tolist() == ["blue", "green", "red"]


def test_the_given_learner_is_cloned() -> None:
    learner = NCMClassifier()
    model = model_of(learner).fit(IMAGES, LABELS)
    assert not hasattr(learner, "classes_")
    assert model.learner_ is not learner


def test_a_clone_has_learnt_nothing() -> None:
    model = clone(model_of().fit(IMAGES, LABELS))
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(IMAGES)
