// What a host lacks, what is worse without it, and the package of Debian that brings it. The programs are listed once,
// in optional_programs.json: for the start and `platform doctor`, `npm run setup`, the tests that need them, and CI.
import { engineDefinitions } from './catalog_definitions/databases';
import type { HostFacts } from './host_facts';
import listed from './optional_programs.json';

/** A program that the platform or its tests use where a machine has it. */
interface OptionalProgram {
  /** Packages of Debian, with blanks between them. */
  package: string;
  /** Names of files; one of them is enough. */
  programs: string[];
  name?: string;
  /** What is worse without it, one sentence. Absent: only tests use it. */
  without?: string;
  /** Every machine has it, or the platform needs it: CI does not hide it. */
  base?: boolean;
  /** Whose platform uses it, if not everybody's. */
  user?: 'root' | 'ordinary';
}

interface MissingProgram {
  name: string;
  /** What is worse without it, one sentence. */
  consequence: string;
  package: string;
}

export const optionalPrograms = listed as OptionalProgram[];

/** Packages of Debian with the servers of engines. */
const ENGINE_PACKAGES: Record<string, string> = {
  postgresql: 'postgresql',
  mariadb: 'mariadb-server',
  redis: 'redis-server',
  valkey: 'valkey-server',
};

/** Pure. What the platform would use and the host lacks, in the order of the list. `isRoot`: of the platform. */
export function missingPrograms(facts: Pick<HostFacts, 'missing_programs'>, isRoot: boolean): MissingProgram[] {
  const isMissing = (name: string): boolean => facts.missing_programs.includes(name);
  return optionalPrograms.flatMap(({ name, without, user, programs, package: packages }) => {
    const isUsed = user === undefined || (user === 'root') === isRoot;
    if (name === undefined || without === undefined || !isUsed || !programs.every(isMissing)) return [];
    return [{ name, consequence: without, package: packages }];
  });
}

/** The one line that installs all of them; null where nothing is missing. */
export function aptInstallCommand(missing: MissingProgram[]): string | null {
  return missing.length ? `apt-get install ${missing.map((one) => one.package).join(' ')}` : null;
}

/** Why an engine that the platform knows is not there, and how it comes; null for a name that is no engine. */
export function engineNotInstalled(id: string): string | null {
  if (!Object.hasOwn(ENGINE_PACKAGES, id)) return null;
  const name = engineDefinitions.find((engine) => engine.id === id)?.name ?? id;
  const command = `apt-get install ${ENGINE_PACKAGES[id]}`;
  return `${name} is not installed on this platform. The operator can install it with \`${command}\`.`;
}
