// The MD5 of many bodies that arrive at the same time, which S3 wants as their entity tags. Each body has a buffer in
// the memory of the kernel. One whose buffer is full waits for the end of the turn of the event loop: until then the
// buffers of others become full, and all of them are hashed side by side.
import { createHash } from 'node:crypto';
import { instantiate } from './assembler';
import { BLOCK_BYTES, md5Function } from './md5_kernel';

/** Bodies that have a buffer; others are hashed one by one. */
const BUFFERS = 64;
const BUFFER_BYTES = 2 ** 17;
/** Of a body that need not be hashed now: less is not worth a turn. */
const COMPANION_BLOCKS_MIN = 64;
const STATES_BYTES = 128;
const LANES_MAX = 8;
const DIGEST_BYTES = 16;
const INITIAL = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476] as const;

export interface Md5 {
  /** Resolves when the next piece may come. */
  update(piece: Buffer): Promise<void>;
  /** Hexadecimal. Nothing may come after it. */
  digest(): Promise<string>;
  /** For a body that broke off, and harmless after `digest`. */
  release(): void;
}

type Kernel = (states: number, blocks: number, ...messages: number[]) => void;
interface Kernels {
  one: Kernel;
  four: Kernel;
  eight: Kernel;
}

/** A body and what of it waits: bytes from `start` to `end` of its buffer. */
interface Lane {
  state: Uint32Array;
  buffer: number;
  start: number;
  end: number;
  /** Set while somebody waits for all of it to be hashed. */
  hashed: (() => void) | null;
}

interface Hall {
  memory: Uint8Array;
  states: Uint32Array;
  kernels: Kernels;
  free: number[];
  lanes: Set<Lane>;
  isScheduled: boolean;
}

/** undefined: nobody has hashed before; null: the kernel does not run here. */
let hall: Hall | null | undefined;

export function openMd5(): Md5 {
  if (hall === undefined) hall = openHall();
  const buffer = hall?.free.pop();
  return hall && buffer !== undefined ? laneOf(hall, buffer) : plainMd5();
}

function openHall(): Hall | null {
  const found = instantiate<Kernels>(
    () => [md5Function('one', 1), md5Function('four', 4), md5Function('eight', 8)],
    STATES_BYTES + BUFFERS * BUFFER_BYTES,
  );
  if (!found) return null;
  const { memory, exports: kernels } = found;
  const free = Array.from({ length: BUFFERS }, (_, n) => STATES_BYTES + n * BUFFER_BYTES).reverse();
  return {
    memory,
    states: new Uint32Array(memory.buffer, 0, STATES_BYTES / 4),
    kernels,
    free,
    lanes: new Set(),
    isScheduled: false,
  };
}

function plainMd5(): Md5 {
  const hash = createHash('md5');
  return {
    update: async (piece) => void hash.update(piece),
    digest: async () => hash.digest('hex'),
    release: () => undefined,
  };
}

function laneOf(at: Hall, buffer: number): Md5 {
  const lane: Lane = { state: Uint32Array.from(INITIAL), buffer, start: 0, end: 0, hashed: null };
  let size = 0;
  at.lanes.add(lane);
  const release = (): void => {
    if (!at.lanes.delete(lane)) return;
    at.free.push(buffer);
    lane.hashed?.();
  };
  const add = async (piece: Buffer): Promise<void> => {
    // Its buffer may be that of another body as soon as it is released.
    for (let from = 0; from < piece.length && at.lanes.has(lane);) {
      const taken = piece.subarray(from, from + BUFFER_BYTES - lane.end);
      at.memory.set(taken, buffer + lane.end);
      lane.end += taken.length;
      from += taken.length;
      if (lane.end === BUFFER_BYTES) await hashSoon(at, lane);
    }
  };
  return {
    async update(piece) {
      size += piece.length;
      await add(piece);
    },
    async digest() {
      await add(tailOf(size));
      if (lane.start < lane.end) await hashSoon(at, lane);
      release();
      const bytes = Buffer.alloc(DIGEST_BYTES);
      for (const [n, word] of lane.state.entries()) bytes.writeUInt32LE(word, 4 * n);
      return bytes.toString('hex');
    },
    release,
  };
}

/** What follows the last byte: a bit, zeros, and the length in bits (RFC 1321 §3.1). */
function tailOf(size: number): Buffer {
  const rest = (size + 1 + 8) % BLOCK_BYTES;
  const tail = Buffer.alloc(1 + 8 + (rest ? BLOCK_BYTES - rest : 0));
  tail[0] = 0x80;
  tail.writeBigUInt64LE(BigInt(size) * 8n, tail.length - 8);
  return tail;
}

const blocksOf = (lane: Lane): number => Math.floor((lane.end - lane.start) / BLOCK_BYTES);

/** Resolves when less than a block of it waits, at the beginning of its buffer. */
function hashSoon(at: Hall, lane: Lane): Promise<void> {
  return new Promise((resolve) => {
    lane.hashed = resolve;
    if (at.isScheduled) return;
    at.isScheduled = true;
    setImmediate(() => {
      at.isScheduled = false;
      hashAll(at);
    });
  });
}

/** All that somebody waits for; with them others, where there is room. */
function hashAll(at: Hall): void {
  for (;;) {
    const busy = [...at.lanes].filter((lane) => blocksOf(lane) > 0).sort((a, b) => blocksOf(b) - blocksOf(a));
    const needed = busy.filter(({ hashed }) => hashed);
    if (!needed.length) break;
    const companions = busy.filter((lane) => !lane.hashed && blocksOf(lane) >= COMPANION_BLOCKS_MIN);
    const chosen = [...needed, ...companions].slice(0, LANES_MAX);
    hashTogether(at, chosen, Math.min(...chosen.map(blocksOf)));
  }
  for (const lane of at.lanes) {
    if (!lane.hashed) continue;
    at.memory.copyWithin(lane.buffer, lane.buffer + lane.start, lane.buffer + lane.end);
    [lane.start, lane.end] = [0, lane.end - lane.start];
    lane.hashed();
    lane.hashed = null;
  }
}

function hashTogether({ kernels, states }: Hall, chosen: readonly Lane[], blocks: number): void {
  const lanes = chosen.length === 1 ? 1 : chosen.length <= 4 ? 4 : LANES_MAX;
  const width = Math.min(lanes, 4);
  // The words of a group of lanes stand side by side. A lane that nobody needs hashes what the first one hashes.
  const place = (index: number, word: number): number =>
    (Math.floor(index / width) * 4 + word) * width + (index % width);
  const messages = Array.from({ length: lanes }, (_, index) => {
    const { buffer, start } = (chosen[index] ?? chosen[0]) as Lane;
    return buffer + start;
  });
  for (const [index, { state }] of chosen.entries())
    for (let word = 0; word < 4; word += 1) states[place(index, word)] = state[word] as number;
  const kernel = { 1: kernels.one, 4: kernels.four, 8: kernels.eight }[lanes] as Kernel;
  kernel(0, blocks, ...messages);
  for (const [index, lane] of chosen.entries()) {
    for (let word = 0; word < 4; word += 1) lane.state[word] = states[place(index, word)] as number;
    lane.start += blocks * BLOCK_BYTES;
    if (lane.start === lane.end) [lane.start, lane.end] = [0, 0];
  }
}
