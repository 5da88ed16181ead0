// The virtual environment of a Python source, beside its files: made by uv in a tenth of a second, by `python -m venv`
// in three (docs/decisions/0220), and kept in the build cache for an unchanged lock.
import { shellWord, type Step } from '../language_plan';
import type { Python } from './python_version';

export const environmentDirectory = '.platform/venv';
export const environmentBin = `${environmentDirectory}/bin`;

/** What the environment is made of; null where the same files may mean other packages at the next build. */
export interface EnvironmentKey {
  /** Paths from the root directory. */
  files: string[];
  /** The command, the installer and versions. */
  words: string[];
}

/** pip of Python itself, and setuptools of those before 3.12: programs call the one and import the other. */
const bundled = [
  'import ensurepip, glob, os, sysconfig',
  "own = os.path.join(os.path.dirname(ensurepip.__file__), '_bundled')",
  "places = [place for place in (sysconfig.get_config_var('WHEEL_PKG_DIR'), own) if place]",
  "names = ('pip-*.whl', 'setuptools-*.whl')",
  'print(*(file for place in places for name in names for file in glob.glob(os.path.join(place, name))))',
].join('\n');

/** An environment without packages, which hides those of the host. */
export function emptyEnvironment({ program }: Python): Step {
  return { name: 'Python environment', command: `${program} -m venv --without-pip ${environmentDirectory}` };
}

/** @param hasUv else by Python itself */
export function environmentStep({ program }: Python, hasUv: boolean, key: EnvironmentKey | null): Step {
  const command = hasUv
    ? [
        `uv venv --quiet --no-project --clear --python ${program} ${environmentDirectory} || exit 1`,
        // `uv sync` leaves pip in environments that had it from the beginning.
        `echo 'seed = true' >> ${environmentDirectory}/pyvenv.cfg`,
        `wheels=$(${environmentBin}/python -c ${shellWord(bundled)} 2>/dev/null)`,
        'install="uv pip install --quiet --offline --no-deps"',
        `[ -z "$wheels" ] || UV_NO_CONFIG=1 $install --python ${environmentBin}/python $wheels || true`,
      ].join('\n')
    : `${program} -m venv ${environmentDirectory}`;
  return { name: 'Python environment', command: key === null ? command : `${restored(key)}\n${command}` };
}

/**
 * After a command that ends the step where it fails: scripts find their Python wherever the files are, and the
 * environment is kept.
 */
export function finished(command: string, key: EnvironmentKey | null): string {
  return [command, relocate, ...(key === null ? [] : [kept()])].join('\n');
}

const KEPT = '"${XDG_CACHE_HOME:-$HOME/.cache}/python-environment"';
/** A larger one costs more to copy than it saves. */
const KEPT_MB_MAX = 1000;

/** Settings of installers are part of the key, but no variable appears in a file. */
function restored({ files, words }: EnvironmentKey): string {
  return [
    `key=$({ printf '%s\\n' ${words.map(shellWord).join(' ')} "$PWD"; env | grep -E '^(PIP|UV|POETRY|PDM)_' | sort`,
    `cat ${files.map((file) => shellWord(`./${file}`)).join(' ')} 2>/dev/null; } | sha256sum | cut -c 1-64)`,
    `kept=${KEPT}`,
    `if [ -d "$kept/$key" ] && mkdir -p ${environmentDirectory} && cp -a "$kept/$key/." ${environmentDirectory}; then`,
    'echo "The packages are unchanged: their environment is that of the last build."; exit 0; fi',
    // The installation exports more variables.
    `rm -rf "$kept" ${environmentDirectory} && mkdir -p "$kept" && printf %s "$key" > "$kept/key" || exit 1`,
  ].join('\n');
}

function kept(): string {
  return [
    `kept=${KEPT}; key=$(cat "$kept/key") && [ ! -d "$kept/$key" ] || exit 0`,
    `[ "$(du -sm ${environmentDirectory} | cut -f 1)" -le ${KEPT_MB_MAX} ] || exit 0`,
    `cp -a ${environmentDirectory} "$kept/new" && mv "$kept/new" "$kept/$key" || rm -rf "$kept"`,
    'exit 0',
  ].join('\n');
}

const relocate = [
  `grep -lI '^#!.*/.platform/venv/bin/python' ${environmentBin}/* 2>/dev/null | while IFS= read -r file; do`,
  '[ -L "$file" ] || sed -i "1s|^#!.*/.platform/venv/bin/python.*|#!/usr/bin/env python3|" "$file"; done',
].join('\n');
