// Rust: cargo builds the programs of a package, or of a workspace, into target/release.
import { BuildError } from '../../builder';
import { satisfies } from '../../toolchain/versions';
import { requireLanguage } from '../host_language';
import type { BuildHost, DetectLanguage, LanguagePlan } from '../language_plan';
import { LISTEN } from '../listen';
import { listNames, printable } from '../message_text';
import type { SourceFiles } from '../source_files';
import { readCargoManifest, type CargoManifest, type CargoProgram } from './cargo_manifest';

const OUTPUT = 'target/release';

export const detectRust: DetectLanguage = async (files, host) => {
  const manifest = await readCargoManifest(files);
  if (manifest === null || manifest.programs.length === 0) return null;
  requireLanguage(host, {
    name: 'Rust',
    file: 'Cargo.toml',
    programs: { cargo: 'cargo', cc: 'build-essential' },
    isInterpreted: false,
  });
  const version = host.facts.programs.cargo!.version;
  await requireToolchain(files, version);
  const meant = findMeant(manifest, host);
  const named = manifest.programs.filter(({ name }) => calls(host, name));
  const built = host.commands.web === undefined && meant !== null ? [meant, ...named] : named;
  const plan: LanguagePlan = {
    kind: 'rust',
    summary: [`Rust ${version}`, 'cargo build'],
    tools: [],
    steps: [{ name: 'cargo build', command: await buildCommand(files, built.length ? built : manifest.programs) }],
    site: [],
    prune: null,
    processes: meant === null ? {} : { web: startCommand(manifest, meant) },
    missing: meant === null ? missingProgram(manifest) : null,
    env: {},
    programs: [OUTPUT],
  };
  return plan;
};

/**
 * A toolchain file is what rustup follows; cargo by itself passes it over.
 * @throws BuildError for a channel that the host does not have
 */
async function requireToolchain(files: SourceFiles, version: string): Promise<void> {
  for (const file of ['rust-toolchain.toml', 'rust-toolchain']) {
    const text = await files.read(file);
    if (text === null) continue;
    const channel = /^\s*channel\s*=\s*["']([\w.-]+)/m.exec(text)?.[1] ?? /^\s*([\w.-]+)\s*$/.exec(text)?.[1] ?? '';
    if (channel === '' || channel === 'stable') return;
    const wanted = /^\d+(?:\.\d+){1,2}$/.exec(channel)?.[0];
    if (wanted !== undefined && satisfies(version, `>=${wanted}`) !== false) return;
    throw new BuildError(
      `${file} asks for Rust ${printable(channel)}, and this host has ${version}. Change the file, or add a ` +
        'Dockerfile.',
    );
  }
}

function findMeant({ name, defaultRun, programs }: CargoManifest, { applicationName }: BuildHost): CargoProgram | null {
  if (programs.length === 1) return programs[0]!;
  const names = [defaultRun, name, applicationName, 'server', 'web'];
  return names.map((one) => programs.find((program) => program.name === one)).find(Boolean) ?? null;
}

function calls({ commands }: BuildHost, name: string): boolean {
  const call = new RegExp(String.raw`(?:^|[\s/;&|])${name}(?![\w./-])`);
  return Object.values(commands).some((command) => call.test(command));
}

/** The output of cargo is large, so it stays in the cache; programs are copied to the place where cargo puts them. */
async function buildCommand(files: SourceFiles, programs: CargoProgram[]): Promise<string> {
  const isLocked = await hasLock(files);
  const packages = [...new Set(programs.map((one) => `-p ${one.package}`))].join(' ');
  const names = programs.map(({ name }) => `--bin ${name}`).join(' ');
  return [
    'export CARGO_TARGET_DIR="$HOME/target"',
    `cargo build --release${isLocked ? ' --locked' : ''} ${packages} ${names} || exit 1`,
    `mkdir -p ${OUTPUT} || exit 1`,
    `for name in ${programs.map(({ name }) => name).join(' ')}; do`,
    // Below a folder of the target, where .cargo/config.toml names one.
    '  newest=$(ls -t "$CARGO_TARGET_DIR/release/$name" "$CARGO_TARGET_DIR"/*/release/"$name" 2>/dev/null | head -n 1)',
    `  cp -- "$newest" "${OUTPUT}/$name" || exit 1`,
    'done',
  ].join('\n');
}

async function hasLock(files: SourceFiles): Promise<boolean> {
  for (const place of [files, ...files.above().map((one) => one.files)]) if (await place.has('Cargo.lock')) return true;
  return false;
}

function startCommand({ dependencies }: CargoManifest, { name }: CargoProgram): string {
  const settings = dependencies.has('rocket') ? `ROCKET_ADDRESS=${LISTEN} ROCKET_PORT=$PORT ` : '';
  return `${settings}${OUTPUT}/${name}`;
}

function missingProgram({ programs }: CargoManifest): string {
  const names = programs.map(({ name }) => name);
  return (
    `The source is a Rust workspace or package with the programs ${listNames(names)}, and none ` +
    'of them has the name of the package or of the application. Add a Procfile with a line like ' +
    `\`web: ${OUTPUT}/${names[0]}\`.`
  );
}
