// CRC-64 of Redis (the polynomial of Jones, reflected, without a final inversion), in halves of 32 bits.
const POLYNOMIAL = 0x95ac9329ac4bc9b5n;

const [LOW, HIGH] = ((): [Uint32Array, Uint32Array] => {
  const [low, high] = [new Uint32Array(256), new Uint32Array(256)];
  for (let index = 0; index < 256; index += 1) {
    let crc = BigInt(index);
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1n ? (crc >> 1n) ^ POLYNOMIAL : crc >> 1n;
    low[index] = Number(crc & 0xffffffffn);
    high[index] = Number(crc >> 32n);
  }
  return [low, high];
})();

export class Crc64 {
  private low = 0;
  private high = 0;

  update(bytes: Uint8Array): this {
    let { low, high } = this;
    for (let at = 0; at < bytes.length; at += 1) {
      const index = (low ^ bytes[at]!) & 0xff;
      low = ((low >>> 8) | (high << 24)) ^ LOW[index]!;
      high = (high >>> 8) ^ HIGH[index]!;
    }
    Object.assign(this, { low, high });
    return this;
  }

  /** Little-endian, as in files and payloads. */
  digest(): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32LE(this.low >>> 0, 0);
    bytes.writeUInt32LE(this.high >>> 0, 4);
    return bytes;
  }
}
