// What an operator does at the terminal stands in the activity, as what is done in the dashboard does: in the
// transaction that does it.
import { userInfo } from 'node:os';
import type { Sql } from '../../core/context';
import { recordOperatorEvent } from '../../models/projects/activity';
import { STARTED_BY_SERVICE } from '../platform/backup_journal';

/** Who started the command, with the name of the person where `sudo` tells it. */
export function operatorName(): string {
  if (process.env[STARTED_BY_SERVICE]) return 'Platform';
  const login = process.env.SUDO_USER || loginName();
  return login === null ? 'Operator' : `Operator (${login})`;
}

/** Users of a container may have no name. */
function loginName(): string | null {
  try {
    return userInfo().username;
  } catch {
    return null;
  }
}

interface Noted {
  action: string;
  resource: { type: string; id: string; name: string | null };
  /** Its members see the entry, too. */
  project_id?: string | null;
  changed_fields?: readonly string[];
}

export function noteAtTerminal(sql: Pick<Sql, 'query'>, noted: Noted): Promise<void> {
  return recordOperatorEvent(sql, { ...noted, name: operatorName() });
}

/** What concerns the installation as a whole. */
export function noteOfInstallation(sql: Pick<Sql, 'query'>, action: string, name: string | null): Promise<void> {
  return noteAtTerminal(sql, { action, resource: { type: 'installation', id: 'installation', name } });
}
