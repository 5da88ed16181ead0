// A gzipped tar (POSIX.1-2001) of files that a person has dropped, made by the browser.
export interface SourceFile {
  /** Path below the folder, with slashes. */
  name: string;
  file: File;
}

const BLOCK = 512;
const text = new TextEncoder();

/** @throws DOMException where a file has changed or gone since it was chosen */
export async function packFiles(files: readonly SourceFile[]): Promise<Blob> {
  const parts: BlobPart[] = [];
  for (const { name, file } of files) {
    const mode = (await isProgram(file)) ? 0o755 : 0o644;
    parts.push(...headersOf(name, file.size, mode), file, new Uint8Array((BLOCK - (file.size % BLOCK)) % BLOCK));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  const zipped = new Blob(parts).stream().pipeThrough(new CompressionStream('gzip'));
  return new Response(zipped).blob();
}

/** Browsers do not say which files can be executed: scripts say it by `#!`, programs of Linux by their format. */
async function isProgram(file: File): Promise<boolean> {
  const [first, second, third, fourth] = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  if (first === 0x23 && second === 0x21) return true;
  return first === 0x7f && second === 0x45 && third === 0x4c && fourth === 0x46;
}

function headersOf(name: string, bytes: number, mode: number): BlobPart[] {
  const own = header(name, bytes, mode, '0');
  // What is no ASCII, or is too long, needs a record of its own.
  if (/^[\x20-\x7e]{1,100}$/.test(name)) return [own];
  const record = paxRecord('path', name);
  const rest = new Uint8Array((BLOCK - (record.length % BLOCK)) % BLOCK);
  return [header('PaxHeader', record.length, 0o644, 'x'), record, rest, own];
}

/** `length key=value`, where the length counts its own digits. */
function paxRecord(key: string, value: string): Uint8Array<ArrayBuffer> {
  const rest = text.encode(` ${key}=${value}\n`).length;
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return text.encode(`${length} ${key}=${value}\n`);
}

function header(name: string, bytes: number, mode: number, type: string): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(BLOCK);
  const put = (value: string, at: number): void =>
    block.set(
      [...value].map((one) => Math.min(one.charCodeAt(0), 0x7f)),
      at,
    );
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`;
  put(name.slice(0, 100), 0);
  put(octal(mode, 7), 100);
  put(octal(0, 7), 108);
  put(octal(0, 7), 116);
  put(octal(bytes, 11), 124);
  put(octal(0, 11), 136);
  put(' '.repeat(8), 148);
  put(type, 156);
  put('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}
