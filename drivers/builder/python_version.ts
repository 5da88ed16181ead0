// Which Python of the host a source gets: what .python-version or runtime.txt asks for, else the one called python3.
import type { HostFacts } from '../../core/host_facts';
import { BuildError } from '../builder';
import type { SourceFiles } from './source_files';

export interface Python {
  /** Its program. */
  program: string;
  version: string;
}

/** `.python-version` as pyenv and uv write it, `runtime.txt` as Heroku reads it; the first line that is no comment. */
const asking = ['.python-version', 'runtime.txt'];

/** @throws BuildError where the host has none of that series, with what the operator has to install */
export async function choosePython(files: SourceFiles, { programs, pythons = {} }: HostFacts): Promise<Python> {
  const usual = programs.python3;
  const asked = await askedVersion(files);
  if (asked === null) {
    if (!usual)
      throw new BuildError(
        'The source needs Python, which is not installed on this platform. Ask the operator to install python3.',
      );
    return { program: 'python3', version: usual.version };
  }
  const [, major, minor] = /^(\d+)(?:\.(\d+))?/.exec(asked.version) ?? [];
  const series = `${major}.${minor}`;
  if (usual && (minor === undefined ? major === '3' : seriesOf(usual.version) === series))
    return { program: 'python3', version: usual.version };
  const found = pythons[series];
  if (found) return { program: `python${series}`, version: found.version };
  throw new BuildError(missing(asked, series, [...(usual ? [seriesOf(usual.version)] : []), ...Object.keys(pythons)]));
}

interface Asked {
  file: string;
  version: string;
}

async function askedVersion(files: SourceFiles): Promise<Asked | null> {
  for (const file of asking) {
    const line = ((await files.read(file)) ?? '')
      .split(/\r?\n/)
      .map((one) => one.replace(/#.*/, '').trim())
      .find(Boolean);
    if (line === undefined) continue;
    const version = /^(?:c?python-)?(\d+(?:\.\d+){0,2})/.exec(line)?.[1];
    if (version === undefined)
      throw new BuildError(`${file} names no version of Python: ${JSON.stringify(line.slice(0, 50))}. Write 3.12.`);
    return { file, version };
  }
  return null;
}

function missing({ file, version }: Asked, series: string, there: string[]): string {
  const known = [...new Set(there)].sort((a, b) => Number(a.slice(2)) - Number(b.slice(2)));
  const wanted = series.endsWith('.undefined') ? version : series;
  return (
    `${file} asks for Python ${version}, and this platform has ${known.length ? known.join(', ') : 'none'}. ` +
    `${known.length ? 'Ask for one of these, or ask' : 'Ask'} the operator to install python${wanted} with its ` +
    'venv module.'
  );
}

function seriesOf(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}
