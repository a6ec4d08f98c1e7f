"""Images of an object and of background: where they come from and how they are divided."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evergrow.research import Dataset, ExperimentContext, Source
from evergrow.research.papers.nips2006.photographs import (
    BACKGROUND,
    SOURCES,
    SOURCES_WITH_OUTLINES,
    every_other,
    keep_used,
    load,
    names_with_outlines,
    outlines_of,
    split_even_odd,
)
from evergrow.research.papers.nips2006.scenes import generate_scenes, outlines, scene_dataset


def of_names(*names, n_train=3, n_test=3):
    """A context whose images are of one colour per class."""

    def part(n_each):
        codes = np.repeat(np.arange(len(names), dtype=np.uint8), n_each)
        return np.tile(codes[:, None, None, None], (1, 20, 20, 3)), np.array(names)[codes]

    def made():
        return Dataset("made", *part(n_train), *part(n_test))

    return ExperimentContext({"made": Source(None, made)})


def test_a_scene_is_the_same_whenever_it_is_drawn():
    first, second = (next(iter(generate_scenes("car", [3]))).pixels for _ in range(2))
    assert np.array_equal(first, second)


def test_only_scenes_with_a_thing_have_an_outline():
    assert [next(iter(generate_scenes(k, [0]))).outline.any() for k in ("bicycle", BACKGROUND)] == [
        True,
        False,
    ]


def test_a_kind_that_is_not_drawn_is_refused():
    with pytest.raises(ValueError, match=r"kind must be one of .*bicycle.* got 'boat'"):
        generate_scenes("boat", [0])


def test_outlines_are_those_of_the_test_scenes():
    data = scene_dataset(4)
    first, _ = outlines("bicycle", 2)
    (scene,) = generate_scenes("bicycle", [1])
    assert np.array_equal(data.X_test[data.y_test == "bicycle"][0], scene.pixels)
    assert np.array_equal(first, scene.outline)


def test_outlines_of_training_scenes_are_those_of_even_numbers():
    context = ExperimentContext({"made": Source(None, lambda: scene_dataset(4))})
    data = load(context, "made")
    found = outlines_of(context, "made", data, "bicycle")
    scenes = {True: [0, 2], False: [1, 3]}
    for trains, numbers in scenes.items():
        mine = [
            outline
            for outline, name, train in zip(found, data.classes, data.trains, strict=True)
            if name == "bicycle" and train == trains
        ]
        drawn = [scene.outline for scene in generate_scenes("bicycle", numbers)]
        assert all(map(np.array_equal, mine, drawn))
    assert [outline is None for outline in found] == (data.classes == BACKGROUND).tolist()


def folder_of(path, *names):
    for name in names:
        (path / name).mkdir(parents=True)
        for number in range(4):
            (path / name / f"{number}.jpg").write_bytes(f"{name} {number}".encode())
    paths = np.array([str(file) for file in sorted(path.glob("*/*.jpg"))])
    classes = np.array([Path(file).parent.name for file in paths])
    return Dataset("photos", paths[::2], classes[::2], paths[1::2], classes[1::2], sha256="0")


def test_the_hash_is_of_the_classes_that_are_used(tmp_path):
    used = ("motorbikes", "car_side", "watch", BACKGROUND)
    alone = keep_used(folder_of(tmp_path / "a", *used))
    among = keep_used(folder_of(tmp_path / "b", "airplanes", *used))
    assert sorted(among.classes) == sorted(used)
    assert alone.sha256 == among.sha256 != "0"
    (tmp_path / "a" / "watch" / "0.jpg").write_bytes(b"another")
    changed = keep_used(replace(alone, sha256="0"))
    assert changed.sha256 != alone.sha256


def test_other_folders_of_images_stay_as_they_are(tmp_path):
    given = folder_of(tmp_path, "cats", "dogs")
    assert keep_used(given) is given


def test_every_other_image_of_each_class_trains():
    classes = np.array(["b", "b", "b", "a", "a"])
    assert every_other(classes).tolist() == [True, False, True, True, False]


def test_a_task_holds_one_object_and_background():
    task = load(of_names("apple", BACKGROUND, "pear"), "made", 2).against_background("pear")
    assert set(task.classes) == {"pear", BACKGROUND}
    assert len(task.images) == len(task.trains) == 12


def test_even_files_train_and_odd_ones_test():
    paths = np.array([f"bikes/{k}.jpg" for k in range(12)])
    labels = np.array(["bikes"] * 12)
    found = split_even_odd(Dataset("x", paths[5:], labels[5:], paths[:5], labels[:5]))
    assert [Path(p).stem for p in found.X_test] == ["1", "3", "5", "7", "9", "11"]


def test_a_folder_that_divides_its_images_itself_stays_divided():
    train = np.array(["train/bikes/1.jpg", "train/bikes/2.jpg"])
    test = np.array(["test/bikes/3.jpg"])
    given = Dataset("x", train, np.array(["bikes"] * 2), test, np.array(["bikes"]))
    assert split_even_odd(given) is given


def test_features_without_images_are_refused_by_what_they_lack():
    rows, labels = np.zeros((4, 7), dtype=np.float32), np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"folder of images per class.*shape \(4, 7\)"):
        split_even_odd(Dataset("features", rows, labels, rows, labels))


def test_the_papers_object_comes_first():
    found = load(of_names("apple", BACKGROUND, "motorbikes"), "made")
    assert found.objects == ["motorbikes"]


def test_without_a_class_of_background_all_others_are_it():
    found = load(of_names("apple", "pear", "plum"), "made", n_each=2)
    assert (
        found.classes.tolist()
        == ["apple"] * 2 + [BACKGROUND] * 2 + ["apple"] * 2 + [BACKGROUND] * 2
    )
    # Both other classes are in it.
    assert {int(found.images[i][0, 0, 0]) for i in (2, 3)} == {1, 2}


def test_two_classes_leave_one_of_them_as_background():
    assert load(of_names("apple", "pear"), "made", n_objects=2).objects == ["apple"]


def test_one_class_alone_is_refused():
    with pytest.raises(ValueError, match="one class"):
        load(of_names("apple"), "made")


def test_a_class_without_test_images_is_named():
    with pytest.raises(ValueError, match="no images of 'apple' for testing"):
        load(of_names("apple", BACKGROUND, n_test=0), "made")


def test_drawn_scenes_are_measured_once_where_they_stand_for_photographs():
    assert names_with_outlines(ExperimentContext(SOURCES_WITH_OUTLINES, quick=True)) == [
        "photographs"
    ]
    assert tuple(SOURCES) == ("photographs",)
