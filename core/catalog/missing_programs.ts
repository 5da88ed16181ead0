// Missing programs, the consequences, and the Debian packages that contain them. The programs are listed once, in
// optional_programs.json: for the start and `platform doctor`, `npm run setup`, the tests that need them, and CI.
import { engineDefinitions } from './catalog_definitions/databases';
import type { HostFacts } from './host_facts';
import listed from './optional_programs.json';

/** A program that the platform or its tests use where it is installed. */
interface OptionalProgram {
  /** Debian packages, separated by spaces. */
  package: string;
  /** File names; one of them is sufficient. */
  programs: string[];
  name?: string;
  /** Consequence of its absence, one sentence. Absent: used by tests only. */
  without?: string;
  /** Present on every machine, or required by the platform: CI does not hide it. */
  base?: boolean;
  /** Only used when the platform runs as this kind of user; absent: as any user. */
  user?: 'root' | 'ordinary';
}

interface MissingProgram {
  name: string;
  /** Consequence of its absence, one sentence. */
  consequence: string;
  package: string;
}

export const optionalPrograms = listed as OptionalProgram[];

/** Debian packages of the database engines. */
const ENGINE_PACKAGES: Record<string, string> = {
  postgresql: 'postgresql',
  mariadb: 'mariadb-server',
  redis: 'redis-server',
  valkey: 'valkey-server',
};

/** Pure. Missing programs in the order of the list. `isRoot`: the platform runs as root. */
export function missingPrograms(facts: Pick<HostFacts, 'missing_programs'>, isRoot: boolean): MissingProgram[] {
  const isMissing = (name: string): boolean => facts.missing_programs.includes(name);
  return optionalPrograms.flatMap(({ name, without, user, programs, package: packages }) => {
    const isUsed = user === undefined || (user === 'root') === isRoot;
    if (name === undefined || without === undefined || !isUsed || !programs.every(isMissing)) return [];
    return [{ name, consequence: without, package: packages }];
  });
}

/** The command that installs all of them; null where nothing is missing. */
export function aptInstallCommand(missing: MissingProgram[]): string | null {
  return missing.length ? `apt-get install ${missing.map((one) => one.package).join(' ')}` : null;
}

/** Message that a supported engine is not installed, with its package; null for an unknown engine. */
export function engineNotInstalled(id: string): string | null {
  if (!Object.hasOwn(ENGINE_PACKAGES, id)) return null;
  const name = engineDefinitions.find((engine) => engine.id === id)?.name ?? id;
  const command = `apt-get install ${ENGINE_PACKAGES[id]}`;
  return `${name} is not installed on this platform. The operator can install it with \`${command}\`.`;
}
