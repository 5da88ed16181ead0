// Names and variables of a service.
import { readDotenv } from '../dotenv';
import { nodeEntries, itemsOf, peek, take, takeAll, nodeText, textsOf, type Node } from '../node';
import { note, openText, pathFrom, report, type ImportRun } from '../run';
import { interpolate } from './interpolation';
import { pairsOf } from './load';

/** Host names by which others reach a service. */
export function hostNamesOf(name: string, node: Node): string[] {
  const hosts = [name];
  for (const key of ['container_name', 'hostname']) {
    const text = nodeText(take(node, key));
    if (text !== null) hosts.push(text);
  }
  for (const [, network] of nodeEntries(peek(node, 'networks')))
    hosts.push(...(textsOf(peek(network, 'aliases')) ?? []));
  return hosts;
}

/** The variables of a service: those of its files, then its own. */
export function serviceVariables(run: ImportRun, service: Node): { key: string; value: string | null; node: Node }[] {
  const found = new Map<string, { key: string; value: string | null; node: Node }>();
  const files = take(service, 'env_file');
  for (const item of files?.is === 'list' ? itemsOf(files) : files ? [files] : [])
    for (const one of fileVariables(run, item)) found.set(one.key, one);
  const own = take(service, 'environment');
  for (const [key, node] of own ? pairsOf(own).entries : []) {
    const value = node.unset || node.is !== 'scalar' || node.value === null ? null : nodeText(node);
    found.set(key, { key, value, node });
    if (node.unset) noteUnset(run, node);
  }
  if (own) takeAll(own);
  return [...found.values()];
}

function noteUnset(run: ImportRun, node: Node): void {
  note(run, node, `${(node.unset ?? []).join(', ')} has no value here.`, 'svc env set, or a value in .env');
}

function fileVariables(run: ImportRun, item: Node): { key: string; value: string | null; node: Node }[] {
  const named = item.is === 'map' ? take(item, 'path') : item;
  const isRequired = nodeText(take(item, 'required')) !== 'false';
  const text = nodeText(named);
  if (!named || text === null) return [];
  const isRaw = nodeText(take(item, 'format')) === 'raw';
  const path = pathFrom(named.file, text);
  if (path === null) {
    report(run, named, 'The path is not within the folder.', 'Copy the file into the folder.');
    return [];
  }
  const content = openText(run, path);
  if (content === undefined) {
    if (isRequired) note(run, named, `${path} is not among the files.`, 'svc env push');
    return [];
  }
  const earlier = new Map<string, string>();
  return readDotenv(content).map(({ key, value: written, line, isLiteral }) => {
    const node: Node = { is: 'scalar', file: path, line, path: key, value: written, source: written, isTaken: false };
    if (!isLiteral && !isRaw) interpolate(run, node, (name) => earlier.get(name) ?? run.environment.get(name));
    node.isTaken = true;
    const value = node.unset ? null : nodeText(node);
    if (value !== null) earlier.set(key, value);
    if (node.unset) noteUnset(run, node);
    return { key, value, node };
  });
}
