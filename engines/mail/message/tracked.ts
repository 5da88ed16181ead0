// Messages with tracking: links in HTML parts are rewritten, and an image is added. All other bytes are unchanged, and
// so are messages with end-to-end signatures or encryption.
import type { EventEmitter } from 'node:events';
import { BodyHash } from './body_hash';
import { replaceLinks, type Replacements } from './html_links';
import { mailsplit } from './mailsplit';
import { openMessageText, type MessageText } from './message_text';

interface MimeNode {
  contentType: string | false;
  multipart: string | false;
  disposition: string | false;
  charset: string | false;
  root: boolean;
}

const HTML_BYTES_MAX = 512 * 1024;
const NODES_MAX = 200;
const UNTOUCHABLE = /^multipart\/(signed|encrypted)|^application\/(pkcs7|x-pkcs7)/i;

interface TrackedBody {
  /** The rewritten message, header and body; the header is the stored one, with the changes of the rewriting. */
  raw: Buffer;
  bodyOffset: number;
  bodyHash: string;
}

/** @returns null where the message has no HTML to track, or must not be changed */
export async function rewriteHtml(text: MessageText, replacements: Replacements): Promise<TrackedBody | null> {
  const { Rewriter, Splitter, Joiner } = mailsplit();
  let touched = false;
  let isUntouchable = false;
  const splitter = new Splitter({ maxChildNodes: NODES_MAX, ignoreEmbedded: true });
  const rewriter = new Rewriter((node: MimeNode) => {
    if (UNTOUCHABLE.test(String(node.contentType || ''))) isUntouchable = true;
    return node.contentType === 'text/html' && node.disposition !== 'attachment';
  });
  rewriter.on('node', (data: RewrittenNode) => {
    collect(data, async (html) => {
      if (isUntouchable || !/^(utf-?8|us-ascii)?$/i.test(String(data.node.charset || ''))) return null;
      touched = true;
      return replaceLinks(html, replacements);
    });
  });
  const chunks: Buffer[] = [];
  const source = openMessageText(text);
  const joiner = new Joiner();
  const failed = (error: Error): void => void joiner.destroy(error);
  for (const stream of [source, splitter, rewriter] as unknown as EventEmitter[]) stream.once('error', failed);
  source.pipe(splitter).pipe(rewriter).pipe(joiner);
  for await (const chunk of joiner as AsyncIterable<Buffer>) chunks.push(chunk);
  return touched && !isUntouchable ? trackedBody(Buffer.concat(chunks)) : null;
}

interface RewrittenNode {
  node: MimeNode;
  decoder: NodeJS.ReadableStream;
  encoder: NodeJS.WritableStream;
}

/** Passes on the decoded text as a whole; a text that is too large is not changed. */
function collect({ decoder, encoder }: RewrittenNode, change: (html: string) => Promise<string | null>): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  decoder.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
  });
  decoder.on('end', () => {
    const whole = Buffer.concat(chunks);
    const asItIs = (): void => void encoder.end(whole);
    if (bytes > HTML_BYTES_MAX) return asItIs();
    change(whole.toString('utf8')).then((text) => (text === null ? asItIs() : encoder.end(Buffer.from(text))), asItIs);
  });
}

function trackedBody(raw: Buffer): TrackedBody | null {
  // The encoders sometimes end lines with LF only; the signature must cover the bytes that are sent.
  const text = raw.toString('latin1').replace(/\r?\n/g, '\r\n');
  const lines = Buffer.from(text, 'latin1');
  const end = lines.indexOf('\r\n\r\n');
  if (end === -1) return null;
  const hash = new BodyHash();
  hash.update(lines.subarray(end + 4));
  return { raw: lines, bodyOffset: end + 4, bodyHash: hash.digest() };
}
