// Settings for the programs that install: variables of the application, a pip.conf of its source, and the version of an
// application that would read it from Git.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { SourceFiles } from '../source_files';

/**
 * Translates pip's index variables for uv, which uses other names (https://docs.astral.sh/uv/pip/ compatibility/). pip
 * selects the best version of all indexes; uv uses the first index, unless configured otherwise.
 */
export const uvSettings = [
  ['UV_DEFAULT_INDEX', '${UV_INDEX_URL:-${PIP_INDEX_URL:-}}'],
  ['UV_INDEX', '${UV_EXTRA_INDEX_URL:-${PIP_EXTRA_INDEX_URL:-}}'],
  ['UV_FIND_LINKS', '$(printf %s "${PIP_FIND_LINKS:-}" | tr " " ,)'],
  ['UV_INSECURE_HOST', '${PIP_TRUSTED_HOST:-}'],
  ['UV_CONSTRAINT', '${PIP_CONSTRAINT:-}'],
  ['UV_NO_INDEX', '${PIP_NO_INDEX:-}'],
  ['SSL_CERT_FILE', '${PIP_CERT:-}'],
  ['UV_INDEX_STRATEGY', 'unsafe-best-match'],
  ['UV_LINK_MODE', 'copy'],
  ['UV_PYTHON_DOWNLOADS', 'never'],
]
  .map(([name, value]) => `: "\${${name}:=${value}}"; [ -z "$${name}" ] || export ${name}; `)
  .join('');

/**
 * Exports what a pip.conf of the source states as variables of pip: pip itself reads none in the directory of a
 * project, and uv none at all, so that a private package would be looked for in the public index. Read at the build,
 * when the variables that it names have their values.
 */
export async function ownSettings(files: SourceFiles): Promise<string> {
  for (const name of ['pip.conf', '.pip/pip.conf', '.pip.conf', '.config/pip/pip.conf', 'pip.ini'])
    if (await files.has(name)) {
      const program = readFileSync(path.join(__dirname, 'pip_settings.py'), 'utf8').trimEnd();
      return [
        `settings="\${PIP_CONFIG_FILE:-}"; [ -f "$settings" ] || settings=${name}`,
        `settings=$(python3 - "$settings" <<'END_OF_PROGRAM'`,
        program,
        'END_OF_PROGRAM',
        ') || exit 1',
        'eval "$settings"',
        '',
      ].join('\n');
    }
  return '';
}

/** Programs that find the version in the history, which builds do not have, and what each takes in its place. */
const versionPrograms: [asked: RegExp, variable: (name: string) => string][] = [
  [
    /setuptools[_-]scm|hatch-vcs|flit[_-]scm|vcs-versioning/,
    (name) => `SETUPTOOLS_SCM_PRETEND_VERSION_FOR_${name.toUpperCase().replace(/[-_.]+/g, '_')}`,
  ],
  [/poetry-dynamic-versioning/, () => 'POETRY_DYNAMIC_VERSIONING_BYPASS'],
  [/uv-dynamic-versioning/, () => 'UV_DYNAMIC_VERSIONING_BYPASS'],
  [/\[tool\.pdm\.version\][^[]*source\s*=\s*["']scm/, () => 'PDM_BUILD_SCM_VERSION'],
];

/** The commit is the version where the application does not state another in the variable of its program. */
export async function versionSettings(files: SourceFiles): Promise<string> {
  const [project, setup, config] = await Promise.all(
    ['pyproject.toml', 'setup.py', 'setup.cfg'].map(async (name) => (await files.read(name)) ?? ''),
  );
  const text = `${project}\n${setup}\n${config}`;
  const name = /^[ \t]*name\s*=\s*["']?([A-Za-z0-9][\w.-]*)/m.exec(text)?.[1];
  if (name === undefined) return '';
  return versionPrograms
    .filter(([asked]) => asked.test(text))
    .map(([, variable]) => variable(name))
    .map((variable) => `export ${variable}="\${${variable}:-0.0.0+g\${SVC_COMMIT_SHA:-0}}"\n`)
    .join('');
}
