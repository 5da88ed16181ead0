// Processor time of PostgreSQL, all its processes together. Linux has it in /proc; elsewhere it is not known.
import { readdirSync, readFileSync } from 'node:fs';
import { withClient } from './stage';

const TICKS_PER_SECOND = 100;

interface Stat {
  parent: number;
  own: number;
  /** Of children that have ended. */
  ended: number;
}

const postmasters = new Map<string, number>();

/** Seconds since the start of the server; NaN where the machine does not report it. */
export async function databaseCpu(url: string): Promise<number> {
  if (process.platform !== 'linux') return NaN;
  const postmaster = postmasters.get(url) ?? (await findPostmaster(url));
  postmasters.set(url, postmaster);
  const root = statOf(String(postmaster));
  if (!root) return NaN;
  let ticks = root.own + root.ended;
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(name) : null;
    if (stat?.parent === postmaster) ticks += stat.own;
  }
  return ticks / TICKS_PER_SECOND;
}

function findPostmaster(url: string): Promise<number> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return statOf(String(rows[0]?.pid))?.parent ?? NaN;
  });
}

/** Null for a process that has ended. */
function statOf(pid: string): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15);
    return { parent: fields[1] ?? 0, own: utime + stime, ended: cutime + cstime };
  } catch {
    return null;
  }
}
