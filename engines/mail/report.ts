// Reports about mail: bounces, and complaints (RFC 5965). Replies of people and vacation responders are ignored.
import type { Readable } from 'node:stream';
import { mailsplit } from './message/mailsplit';
import { outcomesOf, type RecipientOutcome } from './report/delivery_status';
import { decodePart } from './report/part_text';
import { textBounceOf } from './report/text_bounce';

export interface MailReport {
  kind: 'bounce' | 'complaint' | 'none';
  /** What a bounce says of each recipient. */
  outcomes: RecipientOutcome[];
  /** References found in the quoted message and in the report fields. */
  references: string[];
}

export interface ReportPart {
  type: string;
  /** Header fields of the message; empty for its parts. */
  header: ReadonlyMap<string, string>;
  text: string;
}

const PART_BYTES_MAX = 64 * 1024;
const NODES_MAX = 50;
const REFERENCE = /\bb-[0-9a-z]{26}-\d{1,5}-[0-9a-f]{16}\b/gi;
const REFERENCES_MAX = 5;
const HEADERS = ['from', 'subject', 'x-failed-recipients'];

/** Reads the stream to its end in any case. */
export async function readReport(stream: Readable): Promise<MailReport> {
  const parts = await partsOf(stream).catch((): ReportPart[] => []);
  stream.resume();
  const status = parts.find(({ type }) => /^message\/(global-)?delivery-status$/.test(type));
  const feedback = parts.find(({ type }) => type === 'message/feedback-report');
  const quoted = parts.filter(({ type }) =>
    /^(message\/(global-)?(rfc822|feedback-report|headers)|text\/rfc822-headers)/.test(type),
  );
  const texts = [status, ...quoted].flatMap((part) => part?.text ?? []);
  const references = [...new Set(texts.flatMap((text) => text.match(REFERENCE) ?? []))].slice(0, REFERENCES_MAX);
  if (feedback) {
    const isAbuse = /^feedback-type:\s*(abuse|fraud)/im.test(feedback.text);
    return { kind: isAbuse ? 'complaint' : 'none', outcomes: [], references };
  }
  const notice = parts.find(({ type }) => type.startsWith('text/plain'))?.text ?? '';
  const outcomes = status ? outcomesOf(status.text, notice) : textBounceOf(parts);
  return { kind: outcomes.some(({ hasFailed }) => hasFailed) ? 'bounce' : 'none', outcomes, references };
}

interface Chunk {
  type: string;
  contentType?: string | false;
  encoding?: string | false;
  charset?: string | false;
  root?: boolean;
  headers?: { getFirst(name: string): string } | false;
  value?: Buffer;
}

async function partsOf(stream: Readable): Promise<ReportPart[]> {
  const { Splitter } = mailsplit();
  const splitter = new Splitter({ maxHeadSize: PART_BYTES_MAX, maxChildNodes: NODES_MAX, ignoreEmbedded: true });
  const nodes: { node: Chunk; body: Buffer[]; bytes: number }[] = [];
  stream.once('error', () => splitter.destroy());
  stream.pipe(splitter);
  for await (const chunk of splitter as AsyncIterable<Chunk>) {
    if (chunk.type === 'node') nodes.push({ node: chunk, body: [], bytes: 0 });
    const last = nodes[nodes.length - 1];
    if (chunk.type !== 'body' || !last || last.bytes >= PART_BYTES_MAX) continue;
    const value = (chunk.value as Buffer).subarray(0, PART_BYTES_MAX - last.bytes);
    last.bytes += value.length;
    last.body.push(value);
  }
  return nodes.map(({ node, body }) => ({
    type: String(node.contentType || 'text/plain').toLowerCase(),
    header: new Map(HEADERS.map((name) => [name, (node.root && node.headers && node.headers.getFirst(name)) || ''])),
    text: decodePart(Buffer.concat(body), String(node.encoding || ''), String(node.charset || '')),
  }));
}
