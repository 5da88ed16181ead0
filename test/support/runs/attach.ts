// A client of a run at its WebSocket.
import { WebSocket, type ClientOptions } from 'ws';
import type { DeployService, TestApplication } from '../deployments/deploy';
import { waitFor } from '../wait_for';

export interface RunClient {
  ws: WebSocket;
  stdout(): string;
  stderr(): string;
  /** Control messages so far. */
  controls: Record<string, unknown>[];
  /** Input. */
  type(text: string | Buffer): void;
  command(command: object): void;
  /** Waits until the output has this text. */
  shows(text: string, withinMs?: number): Promise<void>;
  /** Waits for a control message. */
  told(type: string): Promise<Record<string, unknown>>;
  closed: Promise<{ code: number; reason: string }>;
}

export interface AttachOptions extends ClientOptions {
  key?: string;
  query?: string;
  protocol?: string;
}

type Service = Pick<DeployService, 'url' | 'key' | 'project'>;

/** @throws Error with the status and the body of a refusal */
export function attach(
  service: Service,
  { id }: Pick<TestApplication, 'id'>,
  runId: string,
  { key = service.key, query = '', protocol = 'platform.run.v1', headers, ...options }: AttachOptions = {},
): Promise<RunClient> {
  const address = `${service.url.replace('http', 'ws')}/v2/applications/${id}/runs/${runId}/attach${query}`;
  const ws = new WebSocket(address, [protocol], {
    ...options,
    headers: { Authorization: `Bearer ${key}`, 'X-Svc-Project': service.project, ...headers },
  });
  const output = { 1: '', 2: '' };
  const controls: Record<string, unknown>[] = [];
  ws.on('message', (data: Buffer) => {
    if (data[0] === 3) controls.push(JSON.parse(data.subarray(1).toString()) as Record<string, unknown>);
    else output[data[0] as 1 | 2] += data.subarray(1).toString();
  });
  const send = (channel: number, bytes: Buffer): void => ws.send(Buffer.concat([Buffer.of(channel), bytes]));
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    ws.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  );
  const client: RunClient = {
    ws,
    stdout: () => output[1],
    stderr: () => output[2],
    controls,
    type: (text) => send(0, Buffer.from(text)),
    command: (command) => send(3, Buffer.from(JSON.stringify(command))),
    shows: (text, withinMs = 15_000) =>
      waitFor(`${text} in the output`, async () => output[1].includes(text), withinMs)
        .catch((error: Error) => Promise.reject(new Error(`${error.message}: ${output[1].slice(-2000)}`)))
        .then(() => undefined),
    told: (type) =>
      waitFor(`the message ${type}`, async () => controls.find((control) => control.type === type), 15_000),
    closed,
  };
  return new Promise((resolve, reject) => {
    ws.once('open', () => resolve(client));
    ws.once('error', reject);
    ws.once('unexpected-response', (_, response) => {
      let text = '';
      response.on('data', (part: Buffer) => (text += part.toString()));
      response.on('end', () => reject(new Error(`${response.statusCode} ${text}`)));
    });
  });
}
