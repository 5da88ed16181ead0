// CRC-32C and CRC-64/NVME, which Node does not have, and CRC-32 where it is older than 20.15.
import { instantiate } from './assembler';
import { crcFunction, crcTables, TABLES_BYTES } from './crc_kernel';

/** Reflected polynomials. */
export const POLYNOMIALS = { CRC32: 0xedb88320n, CRC32C: 0x82f63b78n, CRC64NVME: 0x9a6c9329ac4bc9b5n } as const;
export type CrcName = keyof typeof POLYNOMIALS;
export const CRC_BYTES: Record<CrcName, number> = { CRC32: 4, CRC32C: 4, CRC64NVME: 8 };

const NAMES = Object.keys(POLYNOMIALS) as CrcName[];
/** Behind the tables: what is hashed next. */
const BUFFER = NAMES.length * TABLES_BYTES;
const BUFFER_BYTES = 2 ** 16;

/** The register of a CRC, which begins and ends inverted. */
type Update = (register: bigint, from: number, to: number, tables: number) => bigint;
export type CrcUpdate = (register: bigint, piece: Buffer) => bigint;

let kernel: { memory: Uint8Array; update: Update } | null | undefined;

export function crcUpdate(name: CrcName): CrcUpdate {
  if (kernel === undefined) kernel = openKernel();
  if (!kernel) return tableCrc(name);
  const { memory, update } = kernel;
  const tables = NAMES.indexOf(name) * TABLES_BYTES;
  return (register, piece) => {
    let value = register;
    for (let from = 0; from < piece.length; from += BUFFER_BYTES) {
      const part = piece.subarray(from, from + BUFFER_BYTES);
      memory.set(part, BUFFER);
      value = update(value, BUFFER, BUFFER + part.length, tables);
    }
    return value;
  };
}

function openKernel(): { memory: Uint8Array; update: Update } | null {
  const found = instantiate<{ update: Update }>(() => [crcFunction], BUFFER + BUFFER_BYTES);
  if (!found) return null;
  for (const [n, name] of NAMES.entries())
    found.memory.set(new Uint8Array(crcTables(POLYNOMIALS[name]).buffer), n * TABLES_BYTES);
  return { memory: found.memory, update: found.exports.update };
}

/** Where there is no WebAssembly: a byte a turn. */
function tableCrc(name: CrcName): CrcUpdate {
  const table = crcTables(POLYNOMIALS[name]).subarray(0, 256);
  return (register, piece) => {
    let value = register;
    for (const byte of piece) value = (value >> 8n) ^ (table[Number((value ^ BigInt(byte)) & 255n)] as bigint);
    return value;
  };
}
