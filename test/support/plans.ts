// Plans of builds for sources that a test makes, on a host that a test describes.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { HostFacts } from '../../core/host_facts';
import { BuildError, type BuildPlan, type BuildSettings } from '../../drivers/builder';
import { openBuilder } from '../../drivers/builder/buildpack';
import { driverContext } from '../../drivers/driver';

export const builder = openBuilder();
const folder = mkdtempSync(path.join(os.tmpdir(), 'builder-'));
const program = (version: string) => ({ version, path: '/usr/bin/program' });
export const facts = {
  programs: {
    node: program('20.20.2'),
    npm: program('11.0.0'),
    yarn: program('1.22.0'),
    pnpm: program('9.0.0'),
    python3: program('3.11.2'),
    go: program('1.22.1'),
  },
  oci_builders: [] as string[],
} as unknown as HostFacts;
export const settings: BuildSettings = {
  builder: 'buildpack',
  root_directory: '.',
  dockerfile_path: 'Dockerfile',
  build_command: null,
};
let made = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A directory with these files. */
export function source(files: Record<string, string | object>): string {
  const directory = path.join(folder, `source-${(made += 1)}`);
  mkdirSync(directory);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), typeof content === 'string' ? content : JSON.stringify(content, null, 2));
  }
  return directory;
}

export function detect(
  files: Record<string, string | object>,
  changed: Partial<BuildSettings> = {},
  host = facts,
): Promise<BuildPlan> {
  return builder.detect(source(files), { ...settings, ...changed }, host, driverContext(5_000));
}

/** A host that lacks the program. */
export function without(name: keyof HostFacts['programs']): HostFacts {
  return { ...facts, programs: { ...facts.programs, [name]: undefined } };
}

/** The message of the BuildError that the work ends with. */
export async function buildError(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof BuildError)) throw new Error(`no BuildError but ${String(error)}`);
  expect(error.message).not.toContain(folder);
  return error.message;
}

/** The first lines of the commands. */
export const commands = (plan: BuildPlan) => plan.steps.map(({ command }) => command.split('\n')[0]!);
export const withPackages = { dependencies: { a: '1' } };
