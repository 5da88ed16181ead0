// Zone transfers (AXFR, RFC 5936), signed as served. IXFR is answered with the full zone too (RFC 1995 §4).
import { denialOf, type AliasLookup, type Answered } from './answer';
import { keyOfLabels } from './wire/names';
import { TYPE } from './wire/rdata';
import { signaturesOf } from './signer';
import { cutAbove, type Node, type RecordSet, type Zone } from './zone';

/** Size of a message; the last name may exceed it by 255 bytes. */
const MESSAGE_BYTES = 16_384;

/** The records of the zone in messages: SOA, all other records, SOA. */
export function transferOf(zone: Zone, lookUpAlias: AliasLookup): Answered[][] {
  const apex = zone.nodes.get(keyOfLabels(zone.apex)) as Node;
  const soa = apex.sets.get(TYPE.SOA) as RecordSet;
  const messages: Answered[][] = [[]];
  let bytes = 0;
  const put = (owner: Node, set: RecordSet): void => {
    for (const data of set.rdata) {
      const size = data.length + 50;
      if (bytes + size > MESSAGE_BYTES && bytes > 0) {
        messages.push([]);
        bytes = 0;
      }
      bytes += size;
      messages.at(-1)?.push({ owner: owner.labels, set: { ...set, rdata: [data] }, signatures: [] });
    }
  };
  put(apex, soa);
  for (const node of zone.nodes.values())
    for (const set of setsOf(zone, node, lookUpAlias)) if (set !== soa) put(node, set);
  put(apex, soa);
  return messages;
}

/** All record sets of a name, with signatures where the zone is signed. */
function setsOf(zone: Zone, node: Node, lookUpAlias: AliasLookup): RecordSet[] {
  const sets = [...node.sets.values(), ...aliasSets(node, lookUpAlias)];
  const { signer } = zone;
  if (!signer || cutAbove(zone, node.labels)) return sets;
  const isCut = node.sets.has(TYPE.NS) && node.labels.length > zone.apex.length;
  // At and below a delegation, only DS and NSEC belong to the zone (RFC 4035 §2.2).
  const own = isCut ? sets.filter(({ type }) => type === TYPE.DS) : sets;
  const denial = sets.length ? [denialOf({ zone, lookUpAlias }, node)] : [];
  const signed = [...own, ...denial].map((set) => ({
    ...{ type: TYPE.RRSIG, ttl: set.ttl },
    rdata: signaturesOf(signer, node.labels, set),
  }));
  return [...sets, ...denial, ...signed];
}

function aliasSets({ alias }: Node, lookUpAlias: AliasLookup): RecordSet[] {
  const found = alias && lookUpAlias(alias.target);
  if (!found) return [];
  const all = [
    { type: TYPE.A, ttl: alias.ttl, rdata: found.a },
    { type: TYPE.AAAA, ttl: alias.ttl, rdata: found.aaaa },
  ];
  return all.filter(({ rdata }) => rdata.length > 0);
}
