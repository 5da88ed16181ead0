// The port of a server that does not run may be used by a program that is not ours: then the server gets another one.
import { DriverError } from '../../../core/driver';
import { freePorts, movePort, type PortOwner } from '../../../models/databases/database/ports';
import { appendDatabaseLines } from '../../../models/applications/log_line';
import { progressing, type JobContext, type Outcome, requireHost } from '../../job';

interface Served {
  project_id: string;
  port: number;
}

/**
 * null: the port is free. Called while nothing of ours listens there. @throws DriverError capacity where none is left
 */
export async function leaveTakenPort(owner: PortOwner, row: Served, ctx: JobContext): Promise<Outcome | null> {
  const { runtime } = requireHost(ctx);
  if (await runtime.isPortFree(row.port, row.project_id)) return null;
  const port = await findFreePort(row.project_id, ctx);
  await movePort(ctx, owner, port);
  const message = `Another program on the host uses port ${row.port}. The ${owner.kind} uses port ${port} instead.`;
  await appendDatabaseLines(ctx.sql, [
    {
      project_id: row.project_id,
      database_id: owner.database_id,
      replica_id: owner.kind === 'replica' ? owner.id : null,
      source: owner.kind === 'endpoint' ? 'pooler' : 'server',
      level: 'warning',
      message,
    },
  ]);
  ctx.log.warn(
    { port: row.port, owner: owner.id },
    'a program that is not of the platform uses a port of DATABASE_PORTS',
  );
  return progressing(0);
}

async function findFreePort(projectId: string, ctx: JobContext): Promise<number> {
  const { runtime } = requireHost(ctx);
  for (const port of await freePorts(ctx.sql, ctx.config.databasePorts))
    if (await runtime.isPortFree(port, projectId)) return port;
  throw new DriverError('capacity', 'No port of `DATABASE_PORTS` is free.');
}
