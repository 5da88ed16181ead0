// Loaded into the service before its program (node --require): at SIGUSR2 it begins to take a CPU profile, at the next
// one it writes it.
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';

const file = process.env.BENCH_CPU_PROFILE;
const INTERVAL_US = 200;
let session: Session | null = null;

process.on('SIGUSR2', () => {
  if (session) finish(session);
  else begin();
});

function begin(): void {
  session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
  session.post('Profiler.start');
}

function finish(open: Session): void {
  session = null;
  open.post('Profiler.stop', (error, { profile }) => {
    if (!error && file) writeFileSync(file, JSON.stringify(profile));
    open.disconnect();
  });
}
