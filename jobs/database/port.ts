// The port of a server that does not run may be used by a program that is not ours: then the server gets another one.
import { createServer } from 'node:net';
import { DriverError } from '../../drivers/driver';
import { freePorts, movePort, type PortOwner } from '../../models/database/ports';
import { appendDatabaseLines } from '../../models/log_line';
import { progressing, type JobContext, type Outcome } from '../job';

interface Served {
  project_id: string;
  port: number;
}

/**
 * null: the port is free. Called while nothing of ours listens there. @throws DriverError capacity where none is left
 */
export async function leaveTakenPort(owner: PortOwner, row: Served, ctx: JobContext): Promise<Outcome | null> {
  if (await isFree(row.port)) return null;
  const port = await findFreePort(ctx);
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

async function findFreePort(ctx: JobContext): Promise<number> {
  for (const port of await freePorts(ctx.sql, ctx.config.databasePorts)) if (await isFree(port)) return port;
  throw new DriverError('capacity', 'No port of `DATABASE_PORTS` is free.');
}

/** Whether a program could listen at the port on the loopback interface. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    );
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
