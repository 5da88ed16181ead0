// Settings of pip for the programs that install: variables of the application, and a pip.conf of its source.
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
  for (const name of ['pip.conf', '.pip/pip.conf', 'pip.ini'])
    if (await files.has(name)) {
      const program = readFileSync(path.join(__dirname, 'pip_settings.py'), 'utf8').trimEnd();
      return [
        `PIP_SETTINGS=$(python3 - ${name} <<'END_OF_PROGRAM'`,
        program,
        'END_OF_PROGRAM',
        ') || exit 1',
        'eval "$PIP_SETTINGS"',
        '',
      ].join('\n');
    }
  return '';
}
