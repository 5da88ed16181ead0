// The command that runs once before a version serves: the setting of the application wins over the Procfile.
import type { Sql } from '../../core/context';
import type { SecretBox } from '../../core/secrets';
import type { ReleaseProcess, ReleaseSettings } from '../applications/release_settings';
import { variablesOfRelease } from './release';
import { named } from '../../db/statement';

export interface ReleaseCommand {
  command: string;
  /** Process type whose size it has. */
  process_type: string;
  /** Of the release. */
  variables: Record<string, string>;
}

const FIND = named('select id, settings, processes, variables from releases where id = $1');
const WEB = 'web';

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
  const [first = WEB] = Object.keys(found.processes);
  const process_type = WEB in found.processes ? WEB : first;
  return { command, process_type, variables: variablesOfRelease(secrets, found) };
}
