// npm run demo: all features of applications, and a DNS zone, in about a minute, in its own directory and on its own
// ports. Exit code 0 only if every expectation is met. Ctrl-C cleans up too.
import { openParent, showZone } from './dns';
import { openShow } from './show';
import { openStage } from './stage';
import { perform, untilNothingIsLeft, type Play } from './steps';
import { tracesOf } from './traces';

const INTERRUPTED = 130;

class Interrupted extends Error {}

async function main(): Promise<number> {
  const show = openShow((text) => void process.stdout.write(text));
  const begin = performance.now();
  const interrupted = onSignal();
  show.step('The service starts, with a database, in a directory of its own');
  const parent = await openParent();
  const opening = openStage(parent.settings);
  let play: Play | undefined;
  try {
    const stage = await Promise.race([opening, interrupted]);
    play = { stage, show, ports: new Set() };
    show.note(`ok: ready; applications are served on port ${stage.port}, files are in ${stage.directory}`);
    await Promise.race([perform(play), interrupted]);
    await Promise.race([showZone(stage, show, parent), interrupted]);
    show.step(`All was as expected, in ${((performance.now() - begin) / 1000).toFixed(1)} s.`);
    show.note('next: npm start, which prints the address of the dashboard');
    return 0;
  } catch (error) {
    if (error instanceof Interrupted) show.step('Interrupted: clearing up');
    else {
      show.step(`NOT AS EXPECTED: ${error instanceof Error ? error.message : String(error)}`);
      for (const line of play?.stage.complaints() ?? []) show.line(line);
    }
    return error instanceof Interrupted ? INTERRUPTED : 1;
  } finally {
    if (play) await clearUp(play);
    await (await opening.catch(() => undefined))?.close();
    parent.close();
    show.note('the service is stopped, its directory is gone');
  }
}

function onSignal(): Promise<never> {
  return new Promise((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => reject(new Interrupted(signal)));
  });
}

/** An application that is still there is deleted; what then is left of it is killed. */
async function clearUp(play: Play): Promise<void> {
  const { stage, application } = play;
  if (!application) return;
  await stage.api
    .remove(`/v2/applications/${application.id}`)
    .then(() => untilNothingIsLeft(play))
    .catch(() => {});
  const { processes } = await tracesOf(stage.directory, application.id, []);
  for (const pid of processes) process.kill(pid, 'SIGKILL');
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`demo: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
