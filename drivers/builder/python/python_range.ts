// The Python version stated by a source: in files of version managers, or as a range in package metadata.
import { satisfies } from '../../toolchain/versions';
import { BuildError } from '../../builder';
import { parseToml, table } from '../toml_file';
import type { SourceFiles } from '../source_files';

/** The stated version. */
export interface StatedPython {
  /** The original text. */
  text: string;
  /** The file and field of the statement. */
  statedBy: string;
  /** A version, or a prefix such as 3.14; null = a range. */
  version: string | null;
}

/** `.python-version` of pyenv and uv, `runtime.txt` of Heroku; the first line that is not a comment counts. */
const files = ['.python-version', 'runtime.txt'];

/** null where nothing is stated. @throws BuildError for an unreadable version */
export async function statedPython(source: SourceFiles): Promise<StatedPython | null> {
  for (const file of files) {
    const line = ((await source.read(file)) ?? '')
      .split(/\r?\n/)
      .map((one) => one.replace(/#.*/, '').trim())
      .find(Boolean);
    // As pyenv and mise write it: any version will do.
    if (line === undefined || /^(?:latest|system)$/.test(line)) continue;
    const version = /^(?:c?python-)?(\d+(?:\.\d+){0,2})/.exec(line)?.[1];
    if (version === undefined)
      throw new BuildError(`${file} names no version of Python: ${JSON.stringify(line.slice(0, 50))}. Write 3.12.`);
    return { text: version, statedBy: file, version };
  }
  return (await ofPipfile(source)) ?? (await ofProject(source));
}

async function ofPipfile(source: SourceFiles): Promise<StatedPython | null> {
  const { requires } = parseToml((await source.read('Pipfile')) ?? '', 'Pipfile');
  const text = valueIn(requires, 'python_full_version') ?? valueIn(requires, 'python_version');
  if (text === null || !/^\d+(\.\d+){1,2}$/.test(text)) return null;
  return { text, statedBy: 'Pipfile', version: text };
}

async function ofProject(source: SourceFiles): Promise<StatedPython | null> {
  const { project, tool } = parseToml((await source.read('pyproject.toml')) ?? '', 'pyproject.toml');
  const places = [
    { of: project, key: 'requires-python' },
    { of: table(table(tool).poetry).dependencies, key: 'python' },
  ];
  for (const { of, key } of places) {
    const text = valueIn(of, key);
    if (text !== null && pythonFits('3.14.0', text) !== null)
      return { text, statedBy: `${key} of pyproject.toml`, version: null };
  }
  return null;
}

function valueIn(of: unknown, key: string): string | null {
  const value = table(of)[key];
  return typeof value === 'string' ? value.trim() : null;
}

/**
 * Whether a version matches a specifier (https://packaging.python.org/en/latest/specifications/version-specifiers/) or
 * a Poetry range; null for an unreadable one.
 */
export function pythonFits(version: string, text: string): boolean | null {
  const answers = text.split(/\s*\|\|?\s*/).map((set) => fitsAll(version, set));
  return answers.includes(null) ? null : answers.includes(true);
}

function fitsAll(version: string, set: string): boolean | null {
  const answers = set
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '' && part !== '*')
    .map((part) => fitsOne(version, part));
  return answers.includes(null) ? null : !answers.includes(false);
}

function fitsOne(version: string, part: string): boolean | null {
  const [, operator = '', stated = ''] = /^(===?|!=|~=|>=|<=|>|<|\^|~)?\s*v?(\d+(?:\.\d+)*(?:\.\*)?)$/.exec(part) ?? [];
  if (stated === '') return null;
  const numbers = stated.replace(/\.\*$/, '');
  // By the standard, `==3.12` is 3.12.0 only, which is never the intention.
  if (['', '==', '===', '!='].includes(operator)) {
    const answer = satisfies(version, numbers);
    return answer === null ? null : answer === (operator !== '!=');
  }
  if (operator !== '~=') return satisfies(version, `${operator}${operator === '>' ? exact(numbers) : numbers}`);
  const parts = numbers.split('.').map(Number);
  return parts.length === 2 ? satisfies(version, `>=${numbers} <${parts[0]! + 1}`) : satisfies(version, `~${numbers}`);
}

/** `>3.11` includes 3.11.1. */
function exact(numbers: string): string {
  return [...numbers.split('.'), '0', '0'].slice(0, 3).join('.');
}
