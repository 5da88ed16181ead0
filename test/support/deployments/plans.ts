// Plans of builds for sources that a test makes, on a host that a test describes.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { HostFacts } from '../../../core/catalog/host_facts';
import { BuildError, type BuildDriver, type BuildPlan, type BuildSettings } from '../../../drivers/builder';
import { openBuilder } from '../../../drivers/builder/buildpack';
import { driverContext } from '../../../core/driver';
import { openToolchains } from '../../../drivers/toolchain/store';
import { managerPackage, nodePackage, startNpmRegistry, type NpmRegistry } from '../builds/npm_registry';

/** With the Node.js of the host wherever it fits; the other with the newest long-term line. */
export let builder: BuildDriver;
export let longTermBuilder: BuildDriver;
export let registry: NpmRegistry;
let folder = '';
const program = (version: string) => ({ version, path: '/usr/bin/program' });
export const facts = {
  programs: {
    node: program('20.20.2'),
    npm: program('11.0.0'),
    python3: program('3.11.2'),
    go: program('1.22.1'),
  },
  oci_builders: [] as string[],
  missing_programs: [] as string[],
} as unknown as HostFacts;
export const settings: BuildSettings = {
  builder: 'buildpack',
  root_directory: '.',
  dockerfile_path: 'Dockerfile',
  build_command: null,
};
let made = 0;

const published = [
  ...['18.20.8', '20.20.2', '22.5.1', '22.23.3', '23.11.1', '24.21.0', '26.10.0'].map(nodePackage),
  managerPackage('npm', 'npm', '10.9.9', '^18.17.0 || >=20.5.0'),
  managerPackage('npm', 'npm', '11.21.2', '^20.17.0 || >=22.9.0'),
  managerPackage('npm', 'npm', '12.2.0', '^22.22.2 || ^24.15.0 || >=26.0.0'),
  managerPackage('yarn', 'yarn', '1.22.22', '>=4.0.0'),
  managerPackage('yarn', 'yarn', '2.4.3', '>=10'),
  managerPackage('@yarnpkg/cli-dist', 'yarn', '3.8.7', '>=18.12.0'),
  managerPackage('@yarnpkg/cli-dist', 'yarn', '4.1.0', '>=18.12.0'),
  managerPackage('@yarnpkg/cli-dist', 'yarn', '4.18.1', '>=18.12.0'),
  managerPackage('pnpm', 'pnpm', '8.15.9', '>=16.14'),
  managerPackage('pnpm', 'pnpm', '9.1.0', '>=18.12'),
  managerPackage('pnpm', 'pnpm', '10.34.9', '>=18.12'),
  managerPackage('pnpm', 'pnpm', '11.28.6', '>=22.13'),
];

/** Called at the top of each test file: this module is loaded once for several of them. */
export function setUpPlans(): void {
  beforeAll(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'builder-'));
    registry = await startNpmRegistry(published);
    const toolchains = await openToolchains(path.join(folder, 'toolchains'));
    builder = openBuilder(toolchains, 'host', 'host');
    longTermBuilder = openBuilder(toolchains, 'long_term', 'host');
  });

  afterAll(async () => {
    await registry.close();
    rmSync(folder, { recursive: true, force: true });
  });
}

/** A directory with these files. */
export function source(files: Record<string, string | Buffer | object>): string {
  const directory = path.join(folder, `source-${(made += 1)}`);
  mkdirSync(directory);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), isText(content) ? content : JSON.stringify(content, null, 2));
  }
  return directory;
}

function isText(content: string | Buffer | object): content is string | Buffer {
  return typeof content === 'string' || Buffer.isBuffer(content);
}

export function detect(
  files: Record<string, string | object>,
  changed: Partial<BuildSettings> = {},
  host = facts,
  by = builder,
): Promise<BuildPlan> {
  return by.detect(source(files), { ...settings, ...changed }, host, driverContext(30_000));
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
