// Ports that a test gives to servers of its own. Tests run beside each other, also those of other checkouts, so a
// number made of the process id is not enough: two servers then want one port, and one of them never starts.
import { createServer, type Server } from 'node:net';

interface ClaimedPorts {
  first: number;
  count: number;
  release(): Promise<void>;
}

const BLOCK = 100;
// Below the ports that clients get by themselves (ip_local_port_range begins at 32768).
const [FROM, TO] = [26_000, 32_700];

/** A block of ports that nobody listens on. The process holds its first port as the mark of its claim. */
export async function claimPorts(): Promise<ClaimedPorts> {
  const blocks = (TO - FROM) / BLOCK;
  for (let tried = 0; tried < blocks; tried++) {
    const mark = FROM + ((process.pid + tried) % blocks) * BLOCK;
    const guard = await listen(mark);
    if (guard === null) continue;
    const ports = { first: mark + 1, count: BLOCK - 1 };
    if (await areFree(ports)) return { ...ports, release: () => close(guard) };
    await close(guard);
  }
  throw new Error(`all ports from ${FROM} to ${TO} are taken`);
}

async function areFree({ first, count }: { first: number; count: number }): Promise<boolean> {
  for (let port = first; port < first + count; port++) {
    const server = await listen(port);
    if (server === null) return false;
    await close(server);
  }
  return true;
}

/** null where another server listens. */
function listen(port: number): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(null) : reject(error)));
    server.listen(port, () => resolve(server.unref()));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
