// Lines of pods from the streams of a server that ends them.
import { openKubernetesClient, type KubernetesClient } from '../../../drivers/kubernetes/client/client';
import { openPodLogs, type PodLogs } from '../../../drivers/workload/kubernetes/pod_logs';
import { startOddApiServer, type OddApiServer } from '../../support/kubernetes/odd_api_server';
import { waitFor } from '../../support/wait_for';

const KEY = 'pod.uid-1';

let api: OddApiServer;
let client: KubernetesClient;
let logs: PodLogs;
beforeAll(async () => {
  api = await startOddApiServer();
  client = openKubernetesClient(api.access());
});
beforeEach(() => {
  logs = openPodLogs(client);
  logs.open({ uid: 'uid-1', key: KEY, namespace: 'shop', name: 'web-1', container: 'web' });
});
afterEach(() => logs.close());
afterAll(async () => {
  client.close();
  await api.close();
});

/** Each stream has the lines of before and one more of these, and ends then; the last one stays open. */
function serve(lines: string[]): void {
  let count = 0;
  api.answer((_request, response) => {
    count += 1;
    response.writeHead(200);
    response.write(
      lines
        .slice(0, count)
        .map((line) => `${line}\n`)
        .join(''),
    );
    if (count < lines.length) response.end();
  });
}

async function read(count: number): Promise<string[]> {
  const found: string[] = [];
  let position: string | null = null;
  await waitFor(`${count} lines`, async () => {
    const chunk = await logs.readLog(KEY, position);
    position = chunk.position;
    found.push(...chunk.lines.map(({ text }) => text));
    return found.length >= count;
  });
  return found;
}

test('a stream that is opened again goes on behind the last line', async () => {
  serve([
    '2026-06-01T10:00:00.100000000Z one',
    '2026-06-01T10:00:00.100000000Z two',
    '2026-06-01T10:00:00.100000001Z three',
  ]);
  expect(await read(3)).toEqual(['one', 'two', 'three']);
});

test('no line is lost in the night in which the clock of a node is set back', async () => {
  serve([
    '2026-10-25T02:59:59.900000000+02:00 one',
    '2026-10-25T02:00:00.100000000+01:00 two',
    '2026-10-25T02:00:00.100000001+01:00 three',
  ]);
  expect(await read(3)).toEqual(['one', 'two', 'three']);
});
