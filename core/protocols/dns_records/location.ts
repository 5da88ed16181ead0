// RDATA of LOC (RFC 1876): degrees, minutes and seconds, altitude, size and precision in metres.
import { InvalidRdata, shortenedToken, readBytes, readToken, type Field, type TokenReader } from './fields';

const BYTES = 16;
/** Latitude and longitude count thousandths of a second of arc from here (RFC 1876 §2). */
const EQUATOR = 2 ** 31;
/** Altitudes count centimetres from 100 km below the reference spheroid. */
const BASE_CM = 10_000_000;
const ALTITUDE_CM_MAX = 2 ** 32 - 1;
/** 9e9 cm. */
const SIZE_CM_MAX = 9_000_000_000;
/** Size, horizontal and vertical precision where they are left out, in centimetres. */
const DEFAULTS_CM = [100, 1_000_000, 1000];
const SIZES = ['size', 'horizontal precision', 'vertical precision'];

export const location: Field = {
  read(reader) {
    const latitude = readAngle(reader, { what: 'latitude', degreesMax: 90, signs: { N: 1, S: -1 } });
    const longitude = readAngle(reader, { what: 'longitude', degreesMax: 180, signs: { E: 1, W: -1 } });
    const altitude = readCentimetres(reader, 'altitude') + BASE_CM;
    if (altitude < 0 || altitude > ALTITUDE_CM_MAX)
      throw new InvalidRdata('must have an altitude from -100000.00m to 42849672.95m');
    const data = Buffer.alloc(BYTES);
    SIZES.forEach((what, index) => {
      const isGiven = reader.at < reader.tokens.length;
      const size = isGiven ? readCentimetres(reader, what) : (DEFAULTS_CM[index] as number);
      if (size < 0 || size > SIZE_CM_MAX) throw new InvalidRdata(`must have a ${what} from 0m to 90000000m`);
      data.writeUInt8(encodeSize(size), 1 + index);
    });
    [latitude, longitude, altitude].forEach((value, index) => data.writeUInt32BE(value, 4 + index * 4));
    return data;
  },
  write(bytes) {
    const data = readBytes(bytes, BYTES, 'location');
    if (data[0] !== 0) throw new InvalidRdata('must have version 0 of the format (RFC 1876)');
    const [latitude, longitude, altitude] = [4, 8, 12].map((at) => data.readUInt32BE(at)) as [number, number, number];
    const sizes = [1, 2, 3].map((at) => metres(decodeSize(data[at] as number)));
    const angles = [writeAngle(latitude, 90, 'N', 'S'), writeAngle(longitude, 180, 'E', 'W')];
    return [...angles, metres(altitude - BASE_CM), ...sizes].join(' ');
  },
};

interface Angle {
  what: string;
  degreesMax: number;
  signs: Record<string, 1 | -1>;
}

/** Degrees, minutes and seconds, of which the last ones may be left out, and the direction. */
function readAngle(reader: TokenReader, { what, degreesMax, signs }: Angle): number {
  const parts: string[] = [];
  let sign: 1 | -1 | undefined;
  while (sign === undefined) {
    const { raw } = readToken(reader, what);
    sign = signs[raw.toUpperCase()];
    if (sign === undefined) parts.push(raw);
  }
  const [degrees = '', minutes = '0', seconds = '0'] = parts;
  const isAngle =
    parts.length <= 3 &&
    /^\d{1,3}$/.test(degrees) &&
    /^\d{1,2}$/.test(minutes) &&
    /^\d{1,2}(\.\d{1,3})?$/.test(seconds);
  // PowerDNS writes 9' as 8' 60.000" where a fraction is rounded up.
  const value = (Number(degrees) * 60 + Number(minutes)) * 60_000 + Math.round(Number(seconds) * 1000);
  if (!isAngle || Number(minutes) > 59 || Number(seconds) > 60 || value > degreesMax * 3_600_000)
    throw new InvalidRdata(
      `must have a ${what} as degrees (at most ${degreesMax}), minutes and seconds, then ` +
        Object.keys(signs).join(' or '),
    );
  return EQUATOR + sign * value;
}

function writeAngle(value: number, degreesMax: number, positive: string, negative: string): string {
  const distance = Math.abs(value - EQUATOR);
  if (distance > degreesMax * 3_600_000) throw new InvalidRdata(`must have at most ${degreesMax} degrees`);
  const seconds = ((distance % 60_000) / 1000).toFixed(3);
  const minutes = Math.floor(distance / 60_000) % 60;
  return `${Math.floor(distance / 3_600_000)} ${minutes} ${seconds} ${value < EQUATOR ? negative : positive}`;
}

function readCentimetres(reader: TokenReader, what: string): number {
  const { raw } = readToken(reader, what);
  const [, sign, whole, part = ''] = /^(-?)(\d{1,8})(?:\.(\d{0,2}))?m?$/i.exec(raw) ?? [];
  if (whole === undefined)
    throw new InvalidRdata(`must have a ${what} in metres, such as 10.00m, not ${shortenedToken(raw)}`);
  return (sign ? -1 : 1) * (Number(whole) * 100 + Number(part.padEnd(2, '0')));
}

/** One digit and a power of ten in a byte; further digits are lost (RFC 1876 §2). */
function encodeSize(centimetres: number): number {
  const exponent = Math.max(String(centimetres).length - 1, 0);
  return (Math.floor(centimetres / 10 ** exponent) << 4) | exponent;
}

function decodeSize(byte: number): number {
  const [base, exponent] = [byte >> 4, byte & 0xf];
  if (base > 9 || exponent > 9) throw new InvalidRdata('must have sizes of one decimal digit and a power of ten');
  return base * 10 ** exponent;
}

function metres(centimetres: number): string {
  return `${(centimetres / 100).toFixed(2)}m`;
}
