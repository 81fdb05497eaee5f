"""Runs a workflow of GitHub Actions, and a job of GitLab CI/CD, as their runners do.

All commands are run as they stand, by the shell that runners call, in an empty home, with an empty
kernel cache and the environment that runners set; packages are installed by `pip`. Replaced are
what checks a repository out or sets Python up (it is there), and uploads (files are kept in
`uploads` as they were then). What is not known here, an expression or a key, fails the test.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OWN = "OWNER/adtool@"  # what the sample's workflow calls the action of this repository
_PRESENT = ("actions/checkout@", "actions/setup-python@")
_SYSTEM = ["/usr/local/bin", "/usr/bin", "/bin"]
# How this machine gets to packages.
_PASSED_ON = re.compile(r"PIP_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|(?i:https?|no|all)_proxy")
_STEP = {"name", "id", "if", "uses", "with", "run", "shell", "env", "working-directory"}
_JOB = {"stage", "image", "variables", "cache", "before_script", "script", "artifacts"}


@dataclass
class Machine:
    """home: the repository. root: of adtool, where the action is.

    outcome: of a job. out: all that was printed. ran: names of the steps that were.
    """

    home: Path
    folder: Path
    root: Path
    env: dict[str, str]
    outcome: str = "success"
    out: str = ""
    ran: list[str] = field(default_factory=list)
    uploads: dict[str, dict[str, bytes]] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def at(cls, folder: Path, root: Path, *commands: Path) -> Machine:
        """A machine in an empty folder, with the sample repository checked out.

        commands: folders of programs, beside those of the system.
        """
        home = folder / "repository"
        shutil.copytree(root / "tests" / "gate" / "repository", home)
        subprocess.run(["git", "init", "-q", str(home)], check=True)
        for name in ("home", "temp"):
            (folder / name).mkdir()
        env = {k: v for k, v in os.environ.items() if _PASSED_ON.fullmatch(k)}
        env |= {"HOME": str(folder / "home"), "LANG": "C.UTF-8",
                "PATH": os.pathsep.join([*map(str, commands), *_SYSTEM])}  # fmt: skip
        return cls(home, folder, root, env)

    @property
    def summary(self) -> str:
        """What was written to the summary of the job."""
        path = self.folder / "summary.md"
        return path.read_text() if path.exists() else ""

    def change(self, name: str, old: str, new: str) -> None:
        """Changes a line of the repository."""
        path = self.home / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    # ---- GitHub Actions

    def github(self, workflow: dict[str, Any]) -> None:
        """Runs the one job of a workflow."""
        assert set(workflow) <= {"name", True, "permissions", "jobs"}, "`on` is True in YAML"
        (job,) = workflow["jobs"].values()
        assert set(job) == {"runs-on", "steps"}
        self._steps(job["steps"], {}, {})

    def action(self, given: dict[str, str], action: dict[str, Any]) -> dict[str, str]:
        """Runs a composite action with inputs, and gives its outputs."""
        inputs = {k: str(v.get("default", "")) for k, v in action["inputs"].items()}
        assert set(given) <= set(inputs), "an input that the action does not have"
        missing = [k for k, v in action["inputs"].items() if v.get("required") and k not in given]
        assert not missing
        inputs |= given
        steps: dict[str, dict[str, str]] = {}
        self._steps(action["runs"]["steps"], inputs, steps)
        return {k: self._expand(v["value"], inputs, steps) for k, v in action["outputs"].items()}

    def _steps(
        self, todo: list[dict[str, Any]], inputs: dict[str, str], steps: dict[str, dict[str, str]]
    ) -> None:
        for step in todo:
            assert set(step) <= _STEP, step
            condition = str(step.get("if", ""))
            if self.outcome == "failure" and "cancelled()" not in condition:
                continue
            if condition and not self._holds(condition, inputs, steps):
                continue
            name = step.get("name") or step.get("uses") or step["run"]
            self.ran.append(name)
            if "uses" in step:
                given = {k: self._expand(v, inputs, steps) for k, v in step.get("with", {}).items()}
                found = self._use(step["uses"], given)
            else:
                found = self._run(step, inputs, steps)
            if "id" in step:
                steps[step["id"]] = self.outputs[step["id"]] = found

    def _use(self, what: str, given: dict[str, str]) -> dict[str, str]:
        if what.startswith(OWN):
            import yaml

            return self.action(given, yaml.safe_load((self.root / "action.yml").read_text()))
        if what.startswith(("actions/upload-artifact@", "github/codeql-action/upload-sarif@")):
            path = Path(given.get("path") or given["sarif_file"])
            assert path.exists(), path
            files = sorted(path.iterdir()) if path.is_dir() else [path]
            self.uploads[what.partition("@")[0]] = {p.name: p.read_bytes() for p in files}
            return {}
        assert what.startswith(_PRESENT), f"no such action here: {what}"
        return {}

    def _run(
        self, step: dict[str, Any], inputs: dict[str, str], steps: dict[str, dict[str, str]]
    ) -> dict[str, str]:
        assert "${{" not in step["run"], "an expression in the text of a command"
        output = self.folder / "output.txt"
        output.write_text("")
        own = {k: self._expand(v, inputs, steps) for k, v in step.get("env", {}).items()}
        where = self.home / self._expand(step.get("working-directory", "."), inputs, steps)
        env = self.env | {
            "CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_WORKSPACE": str(self.home), "RUNNER_TEMP": str(self.folder / "temp"),
        }  # fmt: skip
        # As runners call it: bash where it is named, and for steps of workflows without `pipefail`.
        assert step.get("shell", "bash") == "bash"
        shell = ["--noprofile", "--norc", "-eo", "pipefail"] if "shell" in step else ["-e"]
        self._run_by(["bash", *shell], step["run"], where, env | own)
        return dict(line.split("=", 1) for line in output.read_text().splitlines())

    def shell(self, command: str) -> str:
        """Runs a command that must succeed, in the repository; gives what it prints."""
        before = len(self.out)
        self._run_by(["sh", "-e"], command, self.home, self.env)
        assert self.outcome == "success", self.out
        return self.out[before:]

    def _run_by(self, shell: list[str], text: str, where: Path, env: dict[str, str]) -> None:
        script = self.folder / "step.sh"
        script.write_text(text)
        done = subprocess.run(
            [*shell, str(script)], cwd=where, env=env, text=True, timeout=600, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.out += done.stdout
        if done.returncode != 0:
            self.outcome = "failure"

    def _expand(self, text: Any, inputs: dict[str, str], steps: dict[str, dict[str, str]]) -> str:
        if isinstance(text, bool):
            return str(text).lower()
        return re.sub(
            r"\$\{\{\s*(.*?)\s*\}\}", lambda m: self._value(m[1], inputs, steps), str(text)
        )

    def _value(self, name: str, inputs: dict[str, str], steps: dict[str, dict[str, str]]) -> str:
        if name.startswith("'"):
            return name.strip("'")
        if name == "github.action_path":
            return str(self.root)
        if found := re.fullmatch(r"inputs\.([\w-]+)", name):
            return inputs[found[1]]
        found = re.fullmatch(r"steps\.([\w-]+)\.outputs\.([\w-]+)", name)
        assert found is not None, f"an expression that is not known here: {name}"
        return steps.get(found[1], {}).get(found[2], "")

    def _holds(
        self, condition: str, inputs: dict[str, str], steps: dict[str, dict[str, str]]
    ) -> bool:
        inside = re.sub(r"^\$\{\{\s*|\s*\}\}$", "", condition)
        for part in inside.split(" && "):
            if part == "!cancelled()":
                continue
            left, sign, right = re.split(r"\s*(==|!=)\s*", part)
            same = self._value(left, inputs, steps) == self._value(right, inputs, steps)
            if same != (sign == "=="):
                return False
        return True

    # ---- GitLab CI/CD

    def gitlab(self, job: dict[str, Any], shell: str) -> None:
        """Runs a job that is merged with what it includes."""
        assert set(job) <= _JOB, job
        variables = {"CI_PROJECT_DIR": str(self.home), "GITLAB_CI": "true", "CI": "true"}
        for name, value in job["variables"].items():
            variables[name] = str(value).replace("$CI_PROJECT_DIR", str(self.home))
            assert not re.search(r"\$\{?\w", variables[name]), "a variable that is not known here"
        lines = [*job["before_script"], *job["script"]]
        self._run_by([shell, "-e"], "\n".join(lines), self.home, self.env | variables)
        reports = job["artifacts"]["reports"]
        self.uploads["junit"] = {Path(p).name: (self.home / p).read_bytes()
                                 for p in reports.values() if (self.home / p).exists()}  # fmt: skip

    # ---- pre-commit

    def hook(self, hook: dict[str, Any], config: dict[str, Any], files: list[str]) -> int:
        """Runs a hook on files of a commit, as pre-commit calls it; gives its exit code."""
        pattern = re.compile(config.get("files", hook.get("files", "")))
        chosen = [f for f in files if pattern.search(f) and f.endswith(".py")]
        words = [*shlex.split(hook["entry"]), *config.get("args", hook.get("args", []))]
        if not chosen:
            return 0
        done = subprocess.run(
            [*words, *(chosen if hook.get("pass_filenames", True) else [])], cwd=self.home,
            env=self.env, text=True, timeout=300, check=False, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.out += done.stdout
        return done.returncode
