/** @tier heavy @quarter 2 @covers drivers/kubernetes */
// Logs and programs of pods, by the client.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../core/driver';
import { openKubernetesClient, type KubernetesClient } from '../../drivers/kubernetes/client/client';
import { loadKubeconfig } from '../../drivers/kubernetes/client/load_access';
import { podLogLines, type PodLogLine } from '../../drivers/kubernetes/client/pod_log';
import type { PodExit, PodStreamOptions } from '../../drivers/kubernetes/client/pod_stream';
import { resourceTypes } from '../../drivers/kubernetes/client/resource_type';
import { PROGRAM_IMAGE } from '../cluster/image';
import { kubectl } from '../cluster/kubectl';
import { describeOnCluster } from '../cluster/on_cluster';
import { waitForCluster } from '../support/kubernetes/wait_for_cluster';

const { namespaces, pods } = resourceTypes;
const PROGRAM = '/bin/program';
const MIB = 1024 * 1024;

describeOnCluster('streams of pods', (kubeconfig) => {
  const namespace = `streams-${process.pid}`;
  let client: KubernetesClient;
  const ctx = (ms = 60_000) => driverContext(ms);
  const named = (name: string) => ({ namespace, name });

  /** A pod with one container, which does what the arguments say. */
  async function start(name: string, args: string[], more: object = {}): Promise<void> {
    const container = { name: 'main', image: PROGRAM_IMAGE, imagePullPolicy: 'IfNotPresent', args, ...more };
    const spec = { terminationGracePeriodSeconds: 1, restartPolicy: 'OnFailure', containers: [container] };
    await client.apply(pods, { metadata: named(name), spec } as object, ctx());
    await waitForCluster(`the pod ${name}`, async () => {
      const { status } = (await client.get(pods, named(name), ctx())) ?? {};
      return status?.phase === 'Running' || status?.phase === 'Succeeded';
    });
  }

  beforeAll(async () => {
    client = openKubernetesClient(await loadKubeconfig(kubeconfig()));
    await client.apply(namespaces, { metadata: { name: namespace } }, ctx());
    await waitForCluster('the account of pods', () =>
      client.get(resourceTypes.serviceAccounts, named('default'), ctx()),
    );
    await start('idle', ['print=ready', 'pause'], { stdin: true });
  });
  afterAll(async () => {
    await client.remove(namespaces, { name: namespace }, {}, ctx());
    client.close();
  });

  describe('a log', () => {
    test('has times and limits, and is that of kubectl', async () => {
      await start('lines', ['error=start', 'sleep=500ms', 'lines=1000', 'fill=10000', 'print=end', 'pause']);
      await waitForCluster('the last line', async () =>
        (await kubectl(kubeconfig(), '-n', namespace, 'logs', 'lines')).endsWith('end\n'),
      );
      const whole = await text(await client.openPodLog(named('lines'), {}, ctx()));
      expect(whole).toBe(await kubectl(kubeconfig(), '-n', namespace, 'logs', 'lines'));
      expect(await text(await client.openPodLog(named('lines'), { limitBytes: 100 }, ctx()))).toBe(whole.slice(0, 100));
      expect(await text(await client.openPodLog(named('lines'), { tailLines: 2 }, ctx()))).toMatch(/^x+\nend\n$/);
      const lines: PodLogLine[] = [];
      const log = await client.openPodLog(named('lines'), { timestamps: true }, ctx());
      for await (const line of podLogLines(log, 1000)) lines.push(line);
      expect(lines).toHaveLength(1003);
      expect(lines[4]).toMatchObject({ content: Buffer.from('line 3'), cut: false });
      expect(Date.now() - Date.parse(lines[4]?.time ?? '')).toBeLessThan(120_000);
      expect(lines.at(-2)).toMatchObject({ cut: true });
      expect(lines.at(-2)?.content.length).toBeLessThan(1000);
      const sinceTime = new Date(Date.now() + 3_600_000).toISOString();
      expect(await text(await client.openPodLog(named('lines'), { sinceTime }, ctx()))).toBe('');
    });

    test('is followed until the signal', async () => {
      await start('ticking', ['every=50ms']);
      const aborted = new AbortController();
      const log = await client.openPodLog(named('ticking'), { follow: true }, { ...ctx(), signal: aborted.signal });
      const seen: string[] = [];
      await expect(
        (async () => {
          for await (const chunk of log as AsyncIterable<Buffer>) {
            seen.push(chunk.toString());
            if (seen.join('').includes('line 20\n')) aborted.abort();
          }
        })(),
      ).rejects.toThrow();
      expect(seen.join('')).toContain('line 0\nline 1\n');
    });

    test('of the container before a crash is still there', async () => {
      await start('crashing', ['print=last words', 'sleep=300ms', 'exit=3']);
      await waitForCluster('a restart', async () => {
        const { status } = (await client.get(pods, named('crashing'), ctx())) ?? {};
        return (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0;
      });
      // While the container before is being replaced once more, its node answers that it has no log.
      const previous = { previous: true, timestamps: true };
      const lines = await waitForCluster('its log', async () => {
        const found: PodLogLine[] = [];
        for await (const one of podLogLines(await client.openPodLog(named('crashing'), previous, ctx()), 1000))
          found.push(one);
        return found.every(({ time }) => time !== null) && found;
      });
      expect(lines.map(({ content }) => content.toString())).toEqual(['last words']);
    });

    test('that nobody reads costs no memory, and arrives whole', async () => {
      // Below 10 MiB with its times: from there the node begins another file, and gives what is in that one alone.
      const length = 9_000_000;
      await start('much', [`fill=${length}`, 'print=end', 'pause']);
      await waitForCluster('the last line', async () =>
        (await kubectl(kubeconfig(), '-n', namespace, 'logs', 'much', '--tail=1')).startsWith('end'),
      );
      const log = await client.openPodLog(named('much'), {}, ctx(120_000));
      const before = process.memoryUsage().arrayBuffers;
      await once(log, 'readable');
      await sleep(3000);
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(MIB);
      const whole = await text(log);
      expect(whole.length).toBe(length + '\nend\n'.length);
      expect(whole.endsWith('x\nend\n')).toBe(true);
    }, 180_000);

    test('of what is not there is said', async () => {
      await expect(client.openPodLog(named('none'), {}, ctx())).rejects.toMatchObject({ code: 'not_found' });
      await expect(client.openPodLog(named('idle'), { container: 'other' }, ctx())).rejects.toMatchObject({
        ...{ reason: 'invalid', code: 'invalid' },
      });
      await expect(client.openPodLog(named('idle'), { previous: true }, ctx())).rejects.toMatchObject({
        code: 'invalid',
      });
    });
  });

  describe('a program', () => {
    async function exec(
      args: string[],
      input?: string | Buffer,
      options: PodStreamOptions = {},
    ): Promise<PodExit & { out: string; err: string }> {
      const command = [PROGRAM, ...args];
      const stream = await client.openPodStream(
        named('idle'),
        { command, stdin: input !== undefined, ...options },
        ctx(),
      );
      if (input !== undefined) stream.stdin.end(input);
      const [out, err, exit] = await Promise.all([text(stream.stdout), text(stream.stderr), stream.exit]);
      return { out, err, ...exit };
    }

    test.each([0, 1, 3, 255])('that is started gives its output and the code %i', async (code) => {
      expect(await exec(['print=out', 'error=err', `exit=${code}`])).toEqual({
        out: 'out\n',
        err: 'err\n',
        code,
        reason: null,
      });
    });

    test('that cannot be started is said', async () => {
      const { code, reason } = await exec([], undefined, { command: ['/bin/nothing'] });
      expect(code).toBeNull();
      expect(reason).toMatch(/no such file/);
    });

    test('reads 10 MiB of input to its end', async () => {
      const input = Buffer.alloc(10 * MIB, 'a line of input\n');
      const { out, code } = await exec(['digest'], input);
      expect(out).toBe(`${input.length} ${createHash('sha256').update(input).digest('hex')}\n`);
      expect(code).toBe(0);
    });

    test('that is slow to read keeps its writer waiting', async () => {
      const command = [PROGRAM, 'sleep=4s', 'digest'];
      const stream = await client.openPodStream(named('idle'), { command, stdin: true }, ctx());
      const output = text(stream.stdout);
      stream.stderr.resume();
      const piece = Buffer.alloc(256 * 1024);
      let written = 0;
      let largest = 0;
      const end = Date.now() + 2000;
      for (; Date.now() < end && written < 400; written += 1) {
        const more = stream.stdin.write(piece);
        largest = Math.max(largest, stream.stdin.writableLength);
        if (!more) await Promise.race([once(stream.stdin, 'drain'), sleep(Math.max(0, end - Date.now()))]);
      }
      // Buffers of kernel and node are full long before 100 MiB.
      expect(written).toBeLessThan(400);
      expect(largest).toBeLessThanOrEqual(2 * piece.length);
      stream.stdin.end();
      expect(await output).toMatch(new RegExp(`^${written * piece.length} `));
      expect(await stream.exit).toEqual({ code: 0, reason: null });
    });

    test('that writes more than is read waits, and loses nothing', async () => {
      const stream = await client.openPodStream(named('idle'), { command: [PROGRAM, 'lines=2000000'] }, ctx());
      stream.stderr.resume();
      await once(stream.stdout, 'readable');
      await sleep(2000);
      expect(stream.stdout.readableLength).toBeLessThan(5 * MIB);
      const out = await text(stream.stdout);
      expect(out.split('\n')).toHaveLength(2_000_001);
      expect(await stream.exit).toMatchObject({ code: 0 });
    }, 120_000);

    test('has a terminal of the size that it is given', async () => {
      const stream = await client.openPodStream(
        named('idle'),
        { command: [PROGRAM, 'size'], tty: true, stdin: true },
        ctx(),
      );
      let seen = '';
      stream.stdout.on('data', (chunk: Buffer) => (seen += chunk.toString()));
      stream.resize(100, 40);
      await waitForCluster('the size', () => seen.includes('40 100'));
      stream.resize(81, 25);
      await waitForCluster('the other size', () => seen.includes('25 81'));
      stream.close();
      await expect(stream.exit).rejects.toMatchObject({ reason: 'transient' });
    });

    test('of a pod is joined, and its code is in the status of the pod', async () => {
      await start('echo', ['cat', 'print=bye', 'exit=0'], { stdin: true, stdinOnce: true });
      const stream = await client.openPodStream(named('echo'), { stdin: true }, ctx());
      const [output] = [text(stream.stdout), stream.stderr.resume()];
      stream.stdin.end('hello\n');
      expect(await output).toBe('hello\nbye\n');
      expect(await stream.exit).toEqual({ code: null, reason: null });
      const ended = await waitForCluster('the end', async () => {
        const { status } = (await client.get(pods, named('echo'), ctx())) ?? {};
        return status?.containerStatuses?.[0]?.state?.terminated;
      });
      expect(ended.exitCode).toBe(0);
    });

    test('in what is not there is refused', async () => {
      const command = [PROGRAM, 'exit=0'];
      await expect(client.openPodStream(named('none'), { command }, ctx())).rejects.toMatchObject({
        code: 'not_found',
      });
      const other = client.openPodStream(named('idle'), { command, container: 'other' }, ctx());
      await expect(other).rejects.toMatchObject({ reason: 'invalid' });
    });

    test('ends with the signal', async () => {
      const aborted = new AbortController();
      const command = [PROGRAM, 'sleep=1h'];
      const stream = await client.openPodStream(named('idle'), { command }, { ...ctx(), signal: aborted.signal });
      setTimeout(() => aborted.abort(), 200);
      await expect(stream.exit).rejects.toMatchObject({ reason: 'transient' });
    });
  });

  test('events say what became of a pod', async () => {
    const image = 'test.local/none:1';
    const spec = { containers: [{ name: 'main', image, imagePullPolicy: 'Never' }] };
    const pod = await client.apply(pods, { metadata: named('lost'), spec } as object, ctx());
    const reasons = await waitForCluster('an event', async () => {
      const found = (await client.eventsOf(pod, ctx())).map(({ reason }) => reason);
      return found.includes('ErrImageNeverPull') && found;
    });
    expect(reasons[0]).toBe('Scheduled');
  });
});
