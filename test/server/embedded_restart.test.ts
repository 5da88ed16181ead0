// An embedded server that ends while processes need it: those that look after it start it again, where it was.
import { setTimeout as sleep } from 'node:timers/promises';
import { openEmbeddedTrial, query } from '../support/embedded';
import { kill, signalAll } from '../support/processes/processes';
import { until } from '../support/builds/runtime';
import { waitFor } from '../support/wait_for';

const { open, hold, run, server, stopped, keepers } = openEmbeddedTrial();

it('a killed server is back at its address, for all who hold it, and ends with the last of them', async () => {
  const told: (Error | null)[] = [];
  const restarted = (error: Error | null): void => void told.push(error);
  const [first, second] = [await open({ restarted }), await open({ restarted })];
  const other = hold();
  expect(await other.url).toBe(first.url);
  await query(first.url, `create table notes as select 'kept' as text`);
  for (const victims of [() => [server()!.pid], () => keepers(), () => [server()!.pid, ...keepers()]]) {
    const before = server()!.pid;
    told.length = 0;
    signalAll(victims());
    expect(await back(first.url, before)).toEqual([{ text: 'kept' }]);
    await until(() => told.length > 0);
    expect(told.filter(Boolean)).toEqual([]);
    expect(server()!.pid).not.toBe(before);
  }
  await Promise.all([first.close(), second.close()]);
  expect(await query(first.url, 'select text from notes')).toEqual([{ text: 'kept' }]);
  await kill(other.process);
  await stopped();
});

it('an address that another program has taken meanwhile is told, and taken when it is free again', async () => {
  const told: (Error | null)[] = [];
  const { url } = await open({ restarted: (error) => void told.push(error) });
  const { port } = new URL(url);
  const before = server()!.pid;
  const squatter =
    `const take = () => require('net').createServer().on('error', () => setTimeout(take, 1)).listen(${port}, ` +
    "'127.0.0.1', () => console.log('taken')); take()";
  const other = run(squatter);
  await sleep(500);
  signalAll([before]);
  await other.ready;
  await until(() => told.length > 0);
  expect(told[0]).toMatchObject({
    message: expect.stringMatching(/^PostgreSQL does not start: could not create any TCP\/IP sockets/),
  });
  await kill(other.process);
  await until(() => told.includes(null));
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

/** What the notes are, once another server than this one answers. */
async function back(url: string, gone: number): Promise<unknown[]> {
  await until(() => server() !== undefined && server()!.pid !== gone);
  return waitFor('the notes', () => query(url, 'select text from notes').catch(() => null));
}
