// What a host lacks, what is worse without it, and the package of Debian that brings it.
import { engineDefinitions } from './catalog_definitions/databases';
import type { HostFacts, ProgramName } from './host_facts';

export interface MissingProgram {
  name: string;
  /** What is worse without it, one sentence. */
  consequence: string;
  package: string;
}

type EngineId = 'postgresql' | 'mariadb' | 'redis' | 'valkey';

const PROGRAMS: (MissingProgram & { program: ProgramName })[] = [
  {
    program: 'bubblewrap',
    name: 'bubblewrap',
    consequence: 'Applications are not isolated from the files of the host.',
    package: 'bubblewrap',
  },
  { program: 'git', name: 'git', consequence: 'Git repositories cannot be deployed.', package: 'git' },
  {
    program: 'python3',
    name: 'Python',
    consequence: 'Python applications cannot be built.',
    package: 'python3-venv',
  },
  { program: 'go', name: 'Go', consequence: 'Go applications cannot be built.', package: 'golang-go' },
  {
    program: 'pgbouncer',
    name: 'PgBouncer',
    consequence: 'Endpoints of PostgreSQL databases cannot be pooled.',
    package: 'pgbouncer',
  },
  {
    program: 'haproxy',
    name: 'HAProxy',
    consequence: 'Endpoints cannot distribute connections among replicas.',
    package: 'haproxy',
  },
];

const ENGINE_PACKAGES: Record<EngineId, string> = {
  postgresql: 'postgresql',
  mariadb: 'mariadb-server',
  redis: 'redis-server',
  valkey: 'valkey-server',
};

/** Engines that speak the same protocol: one of them is enough. */
const INSTEAD: Partial<Record<EngineId, EngineId>> = { redis: 'valkey', valkey: 'redis' };

/** Pure. Programs first, then engines, each that the host lacks. */
export function missingPrograms(facts: HostFacts): MissingProgram[] {
  const programs = PROGRAMS.filter(({ program }) => !facts.programs[program]);
  const engines = (['postgresql', 'mariadb', 'redis'] as const).filter((id) => !isInstalled(facts, id));
  return [
    ...programs.map(({ program: _, ...missing }) => missing),
    ...engines.map((id) => ({
      name: nameOf(id),
      consequence: `${nameOf(id)} databases are not available.`,
      package: ENGINE_PACKAGES[id],
    })),
  ];
}

/** The one line that installs all of them; null where nothing is missing. */
export function aptInstallCommand(missing: MissingProgram[]): string | null {
  return missing.length ? `apt-get install ${missing.map((one) => one.package).join(' ')}` : null;
}

/** Why an engine that the platform knows is not there, and how it comes; null for a name that is no engine. */
export function engineNotInstalled(id: string): string | null {
  if (!Object.hasOwn(ENGINE_PACKAGES, id)) return null;
  const engine = id as EngineId;
  const command = `apt-get install ${ENGINE_PACKAGES[engine]}`;
  return `${nameOf(engine)} is not installed on this platform. The operator can install it with \`${command}\`.`;
}

function isInstalled(facts: HostFacts, id: EngineId): boolean {
  const instead = INSTEAD[id];
  // The server embedded in this package is the platform's own; databases of customers run on it too.
  return facts[id].length > 0 || (instead !== undefined && facts[instead].length > 0);
}

function nameOf(id: EngineId): string {
  return engineDefinitions.find((engine) => engine.id === id)?.name ?? id;
}
