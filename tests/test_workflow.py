"""What is said of the project outside of its code agrees with it: workflow, Makefile, version, citation."""

import re
import tomllib
from pathlib import Path

import pytest

import lengthwise as lw

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPES = tomllib.loads((ROOT / "recipes" / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
OLDEST = "3.11"


@pytest.fixture
def workflow():
    """Reads the workflow of a name. Its triggers are at the key True: YAML takes `on` for a truth value."""
    yaml = pytest.importorskip("yaml")
    return lambda name: yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))


@pytest.fixture
def jobs(workflow):
    return workflow("ci")["jobs"]


def pythons(job):
    """The versions of Python that a job runs on."""
    matrix = job.get("strategy", {}).get("matrix", {}).get("python", [])
    given = [step["with"]["python-version"] for step in job["steps"] if "python-version" in step.get("with", {})]
    return matrix or given


def test_every_job_runs_a_target_that_the_makefile_has(jobs):
    targets = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
    for name, job in jobs.items():
        called = [target for step in job["steps"] for target in re.findall(r"^make (\w+)", step.get("run", ""))]
        assert len(called) == 1, name
        assert set(called) <= targets, name
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)[1].split()
    assert sorted(phony) == sorted(targets)


def test_the_tests_run_on_every_python_that_the_project_names(jobs):
    prefix = "Programming Language :: Python :: "
    named = [line.removeprefix(prefix) for line in PROJECT["project"]["classifiers"] if line.startswith(prefix)]
    assert pythons(jobs["test"]) == named
    assert all(set(pythons(job)) <= set(named) for job in jobs.values())
    assert PROJECT["project"]["requires-python"] == f">={OLDEST}"
    assert named[0] == pythons(jobs["lowest"])[0] == OLDEST


def test_a_tag_publishes_each_package_as_it_was_built_and_tried(workflow, jobs):
    release = workflow("release")
    assert release[True] == {"push": {"tags": ["v*"]}}
    assert release["permissions"] == {"contents": "read"}
    called, publish = (release["jobs"].pop(name) for name in ("ci", "publish"))
    assert release["jobs"] == {}
    assert called == {"uses": "./.github/workflows/ci.yml"}
    assert "workflow_call" in workflow("ci")[True]
    assert (publish["needs"], publish["permissions"]) == ("ci", {"id-token": "write"})
    # The index knows each package by this file and an environment of its own, and asks for no password.
    names = [PROJECT["project"]["name"], RECIPES["project"]["name"]]
    assert publish["strategy"]["matrix"]["project"] == [name.replace("-", "_") for name in names]
    assert publish["environment"] == publish["steps"][1]["env"]["PROJECT"] == "${{ matrix.project }}"
    download, move, upload = publish["steps"]
    kept = next(step for step in jobs["wheel"]["steps"] if "upload-artifact" in step.get("uses", ""))
    assert download["with"] == kept["with"] == {"name": "wheel", "path": "dist/"}
    assert kept["if"] == f"matrix.python == '{pythons(jobs['wheel'])[-1]}'", "once, whatever the versions"
    start = "dist/$PROJECT-${GITHUB_REF_NAME#v}"
    assert move["run"] == f"mkdir upload && mv {start}-py3-none-any.whl {start}.tar.gz upload/"
    assert upload == {"uses": "pypa/gh-action-pypi-publish@release/v1", "with": {"packages-dir": "upload/"}}


def test_the_version_stands_in_one_place():
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    source = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert re.findall(r'^__version__ = "(.+)"$', source.read_text(encoding="utf-8"), re.MULTILINE) == [lw.__version__]


def test_the_citation_says_what_the_project_says():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = PROJECT["project"]
    assert citation["title"].lower() == project["name"]
    assert citation["abstract"] == project["description"]
    assert citation["license"] == project["license"]
    assert citation["keywords"] == project["keywords"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in project["authors"]]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split()).lower()
    papers = [f"{paper['authors'][0]['family-names']} {paper['year']}" for paper in citation["references"]]
    assert all(paper.lower() in readme for paper in papers)
