// What happens to a database in each status: its data first, then its server, which in the end is as its row desires. A
// step of data stays recorded in the row until it is done, so it goes on after a crash. How data are replaced on the
// disk is drivers/hosted_server/replacement.ts, what follows a failure is failure.ts.
import type { DeclaredStep } from '../../../core/steps';
import type { JobContext, Outcome } from '../../job';
import { copyData, promoteServer, restoreData, reviveServer, stopForRestart, upgradeData } from './lifecycle';
import { reconcileServer } from './reconcile';
import type { DatabaseRow } from './row';

export interface DatabaseStep extends DeclaredStep<DatabaseRow, JobContext> {
  isDone(row: DatabaseRow): boolean;
  run(row: DatabaseRow, ctx: JobContext): Promise<Outcome>;
}

const hasBegun = (row: DatabaseRow): boolean => row.observed?.begun === true;

const server: DatabaseStep = {
  // It may end at any time, so it is asked each time.
  name: 'server',
  isDone: () => false,
  run: reconcileServer,
};

/** By status. In all others there is the server alone. */
export const databaseSteps: Partial<Record<DatabaseRow['status'], readonly DatabaseStep[]>> = {
  provisioning: [
    {
      // It begins as what a replica was.
      name: 'promote',
      isDone: (row) => hasBegun(row) || row.server_id === row.id,
      run: promoteServer,
    },
    {
      // It begins with a backup of another database, or with a point in time of it.
      name: 'copy',
      isDone: (row) => hasBegun(row) || row.server_id !== row.id || !row.restore_from,
      run: copyData,
    },
    server,
  ],
  restoring: [
    {
      name: 'restore',
      isDone: (row) => !row.restoring_from,
      run: restoreData,
    },
    server,
  ],
  upgrading: [
    {
      name: 'upgrade',
      isDone: (row) => !row.wanted_version || row.wanted_version === row.engine_version,
      run: upgradeData,
    },
    server,
  ],
  restarting: [
    {
      // Once for this restart.
      name: 'stop',
      isDone: (row) => row.observed?.stopped_for === row.version,
      run: stopForRestart,
    },
    server,
  ],
  failed: [
    {
      // One that had data may answer after all; of another one, all that is left is to delete it.
      name: 'revive',
      isDone: () => false,
      run: reviveServer,
    },
  ],
};

export function stepsFor({ status }: DatabaseRow): readonly DatabaseStep[] {
  return databaseSteps[status] ?? [server];
}
