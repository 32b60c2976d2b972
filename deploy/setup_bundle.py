"""The pages' own scripts and styles, one file each: ninety small files would be ninety requests.

`python3 deploy/setup_bundle.py` bundles after an edit, without the other steps of set-up.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setup_pages import install_page_packages
from setup_report import ROOT, STAMPS, SetupError, digest, is_stamped, run_command, write_stamp

STATIC = ROOT / "static"
BUNDLE = STATIC / "bundle"
ENTRIES = (STATIC / "js" / "app.js", STATIC / "css" / "app.css")
OPTIONS = (
    "--bundle",
    "--format=esm",
    "--target=es2022",
    "--minify",
    "--sourcemap",
    "--external:../img/*",
)


def bundle_pages() -> None:
    """Bring static/bundle up to date with static/js and static/css."""
    sources = [*sorted((STATIC / "js").glob("*.js")), *sorted((STATIC / "css").glob("*.css"))]
    wanted = digest(*sources, ROOT / "package-lock.json", Path(__file__))
    if is_stamped("bundle", wanted) and BUNDLE.is_dir():
        return
    # Built aside and then swapped in: a server that runs meanwhile finds the old files or the new.
    fresh = BUNDLE.with_name("bundle.new")
    shutil.rmtree(fresh, ignore_errors=True)
    programs = _esbuild()
    if not programs:
        # static/vendor outlives node_modules, so the step before saw nothing to do.
        (STAMPS / "pages").unlink(missing_ok=True)
        install_page_packages()
        programs = _esbuild()
    if not programs:
        raise SetupError("esbuild has no program for this kind of machine; see package-lock.json.")
    output = [f"--outdir={fresh}", "--entry-names=[name]", "--log-level=warning"]
    run_command(
        [programs[0], *ENTRIES, *OPTIONS, *output],
        "esbuild could not bundle static/js and static/css.",
    )
    shutil.rmtree(BUNDLE, ignore_errors=True)
    fresh.rename(BUNDLE)
    write_stamp("bundle", wanted)


def _esbuild() -> list[Path]:
    """The program itself, not its wrapper: that ends with a trace which hides what is wrong."""
    return sorted((ROOT / "node_modules").glob("@esbuild/*/bin/esbuild"))


if __name__ == "__main__":
    bundle_pages()
