"""What a release publishes: its archives, bill of materials, licences, citation and versions."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import tarfile
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from release import audit, sbom
from release.build import source_date
from release.trial import read_extras

TOP = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
yaml = pytest.importorskip("yaml")


def read(name: str) -> str:
    return (TOP / name).read_text(encoding="utf-8")


def write_zip(path: Path, files: dict[str, bytes], year: int = 2026) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), content)


def write_tar(path: Path, mtime: int) -> None:
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("evergrow-1/PKG-INFO")
        member.size, member.mtime = 2, mtime
        archive.addfile(member, io.BytesIO(b"hi"))


# The bill of materials


def test_the_bill_of_materials_names_what_is_compiled_in() -> None:
    bill = sbom.describe("1.2.3", "3.1.0")
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/evergrow@1.2.3"
    found = {one["name"]: one for one in bill["components"]}
    assert found["nanobind"]["version"] == "3.1.0"
    assert "robin-map" in found
    assert all(one["licenses"] for one in bill["components"])


def test_the_bill_of_materials_follows_from_its_content_alone() -> None:
    first, again, other = (sbom.describe("1.0", number) for number in ("3.1", "3.1", "3.2"))
    assert first == again
    assert first["serialNumber"] != other["serialNumber"]


def test_the_bill_of_a_release_has_every_requirement() -> None:
    bill = sbom.add_requirements(sbom.describe("1.0", "3.1"), PROJECT)
    added = {
        one["properties"][0]["value"]: one for one in bill["components"] if "properties" in one
    }
    named = {*PROJECT["dependencies"]}
    for requirements in PROJECT["optional-dependencies"].values():
        named |= {one for one in requirements if not one.startswith("evergrow[")}
    assert added.keys() == named
    assert added["numpy>=1.26"]["scope"] == "required"
    assert added["ray[client]>=2.30"]["purl"] == "pkg:pypi/ray"
    references = [one["bom-ref"] for one in bill["components"]]
    assert len(references) == len(set(references))


def test_the_bill_of_materials_is_valid() -> None:
    pytest.importorskip("cyclonedx.validation.json", reason="make audit checks it")
    bill = sbom.add_requirements(sbom.describe("1.0", "3.1"), PROJECT)
    assert [one for one in audit.check_sbom(json.dumps(bill)) if "lacks" not in one] == []


# Archives


def test_a_wheel_without_licences_runtime_and_core_is_refused() -> None:
    problems = list(audit.check_wheel({"evergrow-1.dist-info/METADATA": b""}))
    assert sum("licence" in one for one in problems) == len(audit.LICENCES)
    for word in ("bill of materials", "ort.wasm.min.js", "core"):
        assert any(word in one for one in problems), word


def test_a_source_archive_is_compared_with_the_commit() -> None:
    tracked = audit._tracked()
    if tracked is None:
        pytest.skip("not a git checkout")
    files = dict.fromkeys({*tracked} - {"SECURITY.md"}, b"")
    problems = list(audit.check_sdist(files))
    assert "SECURITY.md is missing" in problems
    assert "PKG-INFO is missing" in problems
    assert ".ci/run is not a file of the commit" in problems


def test_files_that_differ_between_wheel_and_sources_are_named() -> None:
    sources = {"src/evergrow/a.py": b"1", "src/evergrow/b.py": b"1", "tests/test_a.py": b""}
    wheel = {"evergrow/a.py": b"2", "evergrow/_core.abi3.so": b"", "evergrow/left_over.py": b""}
    problems = list(audit.compare_sources(wheel, sources))
    assert [one.split()[0] for one in problems] == [
        "evergrow/a.py",
        "evergrow/b.py",
        "evergrow/left_over.py",
    ]


def test_equal_builds_are_equal_and_others_say_what_differs(tmp_path: Path) -> None:
    for name, content, year in (("one", b"1", 2026), ("two", b"2", 2026), ("late", b"1", 2027)):
        (tmp_path / name).mkdir()
        write_zip(tmp_path / name / "a-1-py3.whl", {"same": b"", "file": content}, year)
    one, two, late = (tmp_path / name for name in ("one", "two", "late"))
    assert audit.compare(one, one) == []
    assert audit.compare(one, two) == ["a-1-py3.whl differs: file"]
    assert audit.compare(one, late) == ["a-1-py3.whl differs: only their order, times or modes"]
    (late / "a-1-py3.whl").unlink()
    assert audit.compare(one, late) == ["a-1-py3.whl is in one build only"]
    assert audit.compare(late, late) == [f"{late} has no archives"]


def test_a_wheel_has_the_time_of_its_source_archive(tmp_path: Path) -> None:
    write_tar(tmp_path / "evergrow-1.tar.gz", 1234567890)
    assert source_date(tmp_path / "evergrow-1.tar.gz") == 1234567890


def test_the_workflow_runs_targets_that_exist() -> None:
    workflow = yaml.safe_load(read(".github/workflows/release.yml"))
    runs = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    targets = {
        word
        for run in runs
        if run.startswith("make ")
        for word in run.split()[1:]
        if "=" not in word
    }
    assert {"sdist", "audit", "reproducible", "docs"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", read("Makefile"), re.MULTILINE), target


# Licences, citation, recipe


def test_every_licence_file_gets_into_wheels() -> None:
    matched = {
        path.relative_to(TOP).as_posix()
        for pattern in PROJECT["license-files"]
        for path in TOP.glob(pattern)
    }
    assert matched == {*audit.LICENCES}


def test_the_licence_of_nanobind_is_the_one_it_comes_with() -> None:
    try:
        found = distribution("nanobind").read_text("licenses/LICENSE")
    except PackageNotFoundError:
        pytest.skip("nanobind is not installed")
    assert found == read("cpp/bind/nanobind.licence.txt")


def test_the_page_of_licences_has_every_package() -> None:
    rows = dict(re.findall(r"^\| `([\w-]+)` \| ([^|]+) \|", read("docs/licences.md"), re.MULTILINE))
    tools = {"test", "lint", "docs"}
    named = [*PROJECT["dependencies"]]
    for extra, requirements in PROJECT["optional-dependencies"].items():
        named += requirements if extra not in tools else ()
    names = {re.split(r"[^\w-]", one)[0] for one in named} - {"evergrow"}
    assert rows.keys() == names
    for name, licence in rows.items():
        try:
            stated = distribution(name).metadata.get("License-Expression")
        except PackageNotFoundError:
            continue
        if stated is not None and name != "torch":
            assert licence.strip() == stated, name


def test_the_citation_is_complete() -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    papers = " ".join(read("docs/papers.md").split())
    assert len(citation["references"]) == 5
    for reference in citation["references"]:
        assert f"*{reference['title']}*" in papers, reference["title"]
        for author in reference["authors"]:
            assert f"{author['given-names'][0]}. {author['family-names']}" in papers


def test_the_recipe_is_for_this_version() -> None:
    recipe = yaml.safe_load(read("recipe/recipe.yaml"))
    assert recipe["context"]["version"] == PROJECT["version"]
    needed = [one.replace(" ", "") for one in recipe["requirements"]["run"]]
    assert needed == [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]


def test_extras_of_the_docs_are_found() -> None:
    found = read_extras()
    assert {"", "vision", "service"} <= found
    named = {name for extras in found for name in extras.split(",")} - {""}
    assert named <= PROJECT["optional-dependencies"].keys()


# Versions of the documentation


def list_versions(folder: Path, *versions: str) -> list[dict[str, object]]:
    spec = importlib.util.spec_from_file_location("versions", TOP / "docs" / "versions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for version in versions:
        (folder / version).mkdir()
        (folder / version / "index.html").touch()
    module.list_versions(folder, "/evergrow/")
    entries: list[dict[str, object]] = json.loads((folder / "switcher.json").read_text())
    return entries


def test_the_newest_release_is_preferred(tmp_path: Path) -> None:
    entries = list_versions(tmp_path, "0.9.0", "0.10.0", "0.10.0rc1", "0.11.0.dev0", "_static")
    names = [one["version"] for one in entries]
    assert names == ["0.11.0.dev0", "0.10.0", "0.10.0rc1", "0.9.0"]
    assert [one["version"] for one in entries if one["preferred"]] == ["0.10.0"]
    assert entries[1]["name"] == "0.10.0 (stable)"
    assert entries[0]["url"] == "/evergrow/0.11.0.dev0/"
    assert "0.10.0/index.html" in (tmp_path / "index.html").read_text()


def test_before_the_first_release_the_development_version_is_preferred(tmp_path: Path) -> None:
    (entry,) = list_versions(tmp_path, "0.1.0.dev0")
    assert (entry["name"], entry["preferred"]) == ("0.1.0.dev0", True)


def test_a_folder_without_versions_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="has no version"):
        list_versions(tmp_path)
