// The authority section of a negative answer, SOA and proofs, as bytes: names that do not exist are many, what denies
// them is little. Only the pointers to the apex of the zone, whose place depends on the question, differ.
import type { Answered } from './answer';
import type { Labels } from './names';
import { TYPE } from './rdata';
import { recordHead } from './signer';
import type { RecordSet } from './zone';

export interface NegativeSection {
  sets: Answered[];
  bytes: Buffer;
  /** Where the pointers to the apex are. */
  pointers: number[];
  records: number;
  /** Of the name of the apex, in a message. */
  apexBytes: number;
}

const sections = new WeakMap<RecordSet, NegativeSection>();

/** @param authority a SOA, and what is below its name. @returns null where the answer is another one */
export function negativeSection(authority: Answered[]): NegativeSection | null {
  const [soa, proof] = authority;
  if (soa?.set.type !== TYPE.SOA) return null;
  const key = (proof ?? soa).set;
  const known = sections.get(key);
  if (known && isSame(known.sets, authority)) return known;
  const made = write(soa.owner, authority);
  sections.set(key, made);
  return made;
}

/** Sets and signatures are never changed, but others come in their place. */
function isSame(known: Answered[], sets: Answered[]): boolean {
  if (known.length !== sets.length) return false;
  for (let index = 0; index < sets.length; index += 1) {
    const [a, b] = [known[index] as Answered, sets[index] as Answered];
    if (a.set !== b.set || a.owner !== b.owner || a.ttl !== b.ttl) return false;
    if (a.signatures !== b.signatures && a.signatures.length + b.signatures.length > 0) return false;
  }
  return true;
}

function write(apex: Labels, sets: Answered[]): NegativeSection {
  const parts: Buffer[] = [];
  const pointers: number[] = [];
  let position = 0;
  const put = (part: Buffer): void => {
    parts.push(part);
    position += part.length;
  };
  let records = 0;
  for (const { owner, set, ttl = set.ttl, signatures } of sets) {
    const relative = owner.slice(0, owner.length - apex.length);
    const name = Buffer.concat(
      relative.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]),
    );
    for (const [type, all] of [[set.type, set.rdata] as const, [TYPE.RRSIG, signatures] as const]) {
      for (const data of all) {
        put(name);
        pointers.push(position);
        put(Buffer.alloc(2));
        put(recordHead({ type, ttl }, data));
        put(data);
        records += 1;
      }
    }
  }
  const apexBytes = apex.reduce((sum, label) => sum + label.length + 1, 1);
  return { sets, bytes: Buffer.concat(parts), pointers, records, apexBytes };
}
