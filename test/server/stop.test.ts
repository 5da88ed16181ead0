/** @tier heavy @quarter 3 @covers server/service.ts server/web_processes/primary.ts */
// A stop while something is under way elsewhere: the API answers until that has ended.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/processes/free_port';
import { startProgram } from '../support/processes/program';
import { database, directory, setUpStarts } from '../support/processes/start_cases';

jest.setTimeout(240_000);
setUpStarts();

test.each(['1', '2'])(
  'with %s processes the API answers while an upload to a bucket is waited for',
  async (processes) => {
    const [port, s3Port] = [await freePort(), await freePort()];
    const program = startProgram({
      ...{ PLATFORM_DATA_DIR: directory(`stopped-${processes}`), DATABASE_URL: await database(true) },
      ...{ PORT: String(port), S3_PORT: String(s3Port), WEB_CONCURRENCY: processes, SHUTDOWN_GRACE_SECONDS: '5' },
    });
    await program.ready();
    const upload = connect(s3Port, '127.0.0.1');
    upload.on('error', () => undefined);
    await once(upload, 'connect');
    upload.write('PUT /bucket/object HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ');
    // Until it is read.
    await sleep(500);

    program.signal('SIGTERM');
    const signalled = performance.now();
    let [isOver, answeredMs, said] = [false, 0, ''];
    void program.ended.then(() => (isOver = true));
    for (; !isOver; await sleep(50)) {
      const answer = await fetch(`http://127.0.0.1:${port}/v2/me`).catch(() => null);
      if (answer?.status !== 401) continue;
      answeredMs = performance.now() - signalled;
      const readiness = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
      said = (await readiness?.text().catch(() => null)) ?? said;
    }
    expect(await program.ended).toBe(0);
    expect(answeredMs).toBeGreaterThan(2_500);
    if (processes === '1') expect(said).toBe('{"status":"not_ready","reasons":["draining"]}');
    upload.destroy();
  },
);
