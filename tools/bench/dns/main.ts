// The embedded name server beside PowerDNS on the same machine, with the same names and clients, as ratios; then many
// zones in one process, and the time from an answer of the API to an answer of the name server.
//   npm run bench:dns [speed|size|service] [zones]
import { mkdtempSync, chmodSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import * as path from 'node:path';
import { printLine, runBench } from '../run';
import { serve } from './servers';
import { measureService } from './service';
import { measureSize } from './size';
import { compareSpeed } from './speed';

const [part, argument, port] = process.argv.slice(2);

async function main(): Promise<void> {
  const count = Number(argument ?? 100_000);
  const directory = mkdtempSync(path.join(tmpdir(), 'bench-dns-'));
  chmodSync(directory, 0o711); // as root, the database runs as another user
  printLine(`Node ${process.version}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`);
  try {
    if (!part || part === 'speed') await compareSpeed(directory);
    if (!part || part === 'size') await measureSize(path.join(directory, 'size'), count);
    if (!part || part === 'service') await measureService(path.join(directory, 'service'), count);
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }
}

if (part === 'serve') void serve(argument as string, Number(port));
else runBench(main);
