// Selects the Python of a source: the stated version, from the host or by uv, or else the newest line that is allowed.
// If it is unavailable, the Python of the host is used where the source allows it, with a note in the log.
import { highest, satisfies } from '../../toolchain/versions';
import { BuildError } from '../../builder';
import { DriverError, driverContext } from '../../../core/driver';
import type { Tool, ToolName } from '../../toolchain';
import type { BuildHost } from '../language_plan';
import { printable } from '../message_text';
import { pythonFits, statedPython, type StatedPython } from './python_range';
import type { SourceFiles } from '../source_files';

export interface Python {
  /** Name or path of the executable. */
  program: string;
  version: string;
  /** Downloaded tools. */
  tools: Tool[];
  /** Why this version was chosen: a sentence. */
  reason: string;
  /** Note for the owner: a sentence. */
  note: string | null;
}

type Found = Pick<Python, 'program' | 'version' | 'tools'>;

/** Lines with bug fixes, newest first. Newer lines lack packages, and have to be requested. */
const LINES = ['3.14', '3.13', '3.12', '3.11', '3.10'];
/** Limit of the wait where the Python of the host is a fallback. */
const DOWNLOAD_MS = 5 * 60_000;

/**
 * May download a missing version, to know whether the Python of the host must be used.
 * @throws BuildError where no allowed version is available, with what the operator has to install
 */
export async function choosePython(files: SourceFiles, host: BuildHost): Promise<Python> {
  const stated = await statedPython(files);
  const ours = pythonsOfHost(host).filter(({ version }) => isAllowed(version, stated));
  const usual = ours[0];
  if (usual && (host.preferredPython === 'host' || isNewest(usual.version, stated)))
    return { ...usual, reason: reasonOf(usual.version, stated, host), note: null };
  const newest = ours.find(({ version }) => isNewest(version, stated));
  if (newest) return { ...newest, reason: reasonOf(newest.version, stated, host), note: null };
  if (host.preferredPython === 'host' && !host.isPortable) throw new BuildError(missing(stated, host, null));
  try {
    const version = await newestBuild(stated, host);
    // A version of the same line on the host is good enough.
    const found = ours.find((one) => seriesOf(one.version) === seriesOf(version)) ?? (await downloaded(version, host));
    return { ...found, reason: reasonOf(found.version, stated, host), note: null };
  } catch (error) {
    if (host.ctx.signal.aborted || !(error instanceof DriverError || error instanceof BuildError)) throw error;
    if (!usual) throw new BuildError(missing(stated, host, error.message));
    const note =
      `Python ${usual.version} of the host is used, because a newer one could not be installed: ` + `${error.message}`;
    return { ...usual, reason: reasonOf(usual.version, stated, host), note };
  }
}

/**
 * uv, Poetry or PDM: that of the host if it is not older than the one of the platform, which reads the newest formats
 * of lock files, else from the Python package index; null where unavailable.
 */
export async function chooseInstaller(
  name: 'uv' | 'poetry' | 'pdm',
  host: BuildHost,
): Promise<{ version: string; tools: Tool[] } | null> {
  const installed = name === 'pdm' ? undefined : host.facts.programs[name];
  const ours = installed ? { version: installed.version, tools: [] } : null;
  if (host.preferredPython === 'host') return ours;
  try {
    const [published] = await versionsOf(name, host);
    if (published === undefined) return ours;
    if (ours !== null && satisfies(ours.version, `>=${published.version}`)) return ours;
    const tools: Tool[] = [{ name, version: published.version, package: name }];
    await host.toolchains.ensure(tools, driverContext(DOWNLOAD_MS, host.ctx.signal));
    return { version: published.version, tools };
  } catch (error) {
    if (host.ctx.signal.aborted || !(error instanceof DriverError)) throw error;
    return ours;
  }
}

/** The one that is called python3 first. */
function pythonsOfHost({ facts: { programs, pythons = {} }, isPortable }: BuildHost): Found[] {
  if (isPortable) return [];
  const usual = programs.python3;
  return [
    ...(usual ? [{ program: 'python3', version: usual.version, tools: [] }] : []),
    ...Object.entries(pythons)
      .filter(([series]) => !usual || series !== seriesOf(usual.version))
      .map(([series, { version }]) => ({ program: `python${series}`, version, tools: [] })),
  ];
}

/** @throws BuildError; DriverError where the list is unavailable */
async function newestBuild(stated: StatedPython | null, host: BuildHost): Promise<string> {
  const fit = (await versionsOf('python', host)).filter(({ version }) => isAllowed(version, stated));
  const line = LINES.find((one) => fit.some(({ version }) => seriesOf(version) === one));
  const exact = fit.find(({ version }) => version === stated?.version);
  const found = exact ?? highest(line === undefined ? fit : fit.filter(({ version }) => seriesOf(version) === line));
  if (found === null) throw new BuildError('There is no build of that version.');
  return found.version;
}

async function downloaded(version: string, host: BuildHost): Promise<Found> {
  const tools: Tool[] = [{ name: 'python', version, package: packageOf('python', host)! }];
  await host.toolchains.ensure(tools, driverContext(DOWNLOAD_MS, host.ctx.signal));
  return { program: 'python3', version, tools };
}

async function versionsOf(name: ToolName, host: BuildHost): Promise<{ version: string }[]> {
  const packageName = packageOf(name, host);
  return packageName === null ? [] : host.toolchains.versions(name, packageName, host.ctx);
}

function packageOf(name: ToolName, { toolchains }: BuildHost): string | null {
  return toolchains.packageOf(name, null);
}

/** The patch of a complete version is ignored: 3.12.4 means 3.12, which gets fixes. */
function isAllowed(version: string, stated: StatedPython | null): boolean {
  if (stated === null) return true;
  if (stated.version === null) return pythonFits(version, stated.text) === true;
  return satisfies(version, seriesOf(stated.version)) === true;
}

/** Whether it is from the newest allowed line. */
function isNewest(version: string, stated: StatedPython | null): boolean {
  if (stated?.version?.includes('.')) return true;
  const line = LINES.find((one) => isAllowed(`${one}.99`, stated));
  return line === undefined || seriesOf(version) === line;
}

function reasonOf(version: string, stated: StatedPython | null, host: BuildHost): string {
  if (stated !== null) return `Python ${version} is what ${stated.statedBy} asks for (${printable(stated.text)}).`;
  if (host.preferredPython === 'host')
    return `The Python ${version} of the host is used, because PREFERRED_PYTHON is host.`;
  if (seriesOf(version) === LINES[0])
    return `Python ${version} is of the newest line that packages are made for, since the source names no version.`;
  return `Python ${version} is that of the host, and the source names no version.`;
}

function missing(stated: StatedPython | null, { facts }: BuildHost, why: string | null): string {
  const reason = why === null ? '' : ` It could not be downloaded: ${why}`;
  const pythons = [facts.programs.python3?.version, ...Object.keys(facts.pythons ?? {})].filter((one) => one != null);
  if (stated === null)
    return (
      'The source needs Python, which is not installed on this platform. Ask the operator to install python3.' + reason
    );
  const known = [...new Set(pythons.map(seriesOf))].sort((a, b) => Number(a.slice(2)) - Number(b.slice(2)));
  const series = /^\d+\.\d+/.exec(stated.version ?? stated.text.replace(/^[^\d]*/, ''))?.[0] ?? stated.text;
  return (
    `${stated.statedBy} asks for Python ${printable(stated.text)}, and this platform has ` +
    `${known.length ? known.join(', ') : 'none'}. ${known.length ? 'Ask for one of these, or ask' : 'Ask'} the ` +
    `operator to install python${series} with its venv module.${reason}`
  );
}

function seriesOf(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}
