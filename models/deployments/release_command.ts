// The command that runs once before a version serves: the setting of the application wins over the Procfile.
import type { Sql } from '../../core/context';
import type { SecretBox } from '../../core/secrets';
import { variablesOfRelease, type ReleaseProcess, type ReleaseSettings } from './release';
import { named } from '../../db/statement';

export interface ReleaseCommand {
  command: string;
  root_directory: string;
  variables: Record<string, string>;
  memory_mb: number;
  cpus: number | null;
  image: ReleaseSettings['image'] | null;
}

const FIND = named('select id, settings, processes, variables from releases where id = $1');
/** Where no process type says how large it is. */
const MEMORY_MB = 512;

/** null where there is none. @param planned as the source says it */
export async function loadReleaseCommand(
  sql: Sql,
  secrets: SecretBox,
  releaseId: string,
  planned: string | null,
): Promise<ReleaseCommand | null> {
  const [found] = await sql.query<{
    id: string;
    settings: ReleaseSettings;
    processes: Record<string, ReleaseProcess>;
    variables: string;
  }>(FIND, [releaseId]);
  const command = found?.settings.run.release_command ?? planned;
  if (!found || !command) return null;
  const size = found.processes.web ?? Object.values(found.processes)[0];
  return {
    command,
    root_directory: found.settings.root_directory,
    variables: variablesOfRelease(secrets, found),
    memory_mb: size?.memory_mb ?? MEMORY_MB,
    cpus: size?.cpus ?? null,
    image: found.settings.image ?? null,
  };
}
