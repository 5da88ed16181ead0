// Examples of answers: of every field that REST shows, by the example of the field, its id, format or type.
import { getNullableType, isNonNullType, isObjectType, type GraphQLObjectType, type GraphQLType } from 'graphql';
import { specOf } from '../../contract/spec';
import type { DocumentBuilder } from './builder';
import type { Ref } from './document';
import { innermost, isListOf, leafExample } from './examples';
import { exampleIn } from './scalar_schemas';
import { shownFields, type Node } from './schemas';

/** Prefixes of ids that can belong to several kinds: a sibling field names the kind. */
const KIND_PREFIXES: Record<string, string> = { volume: 'vol', domain: 'dom', application: 'app' };

/** Opaque to clients. */
const STREAM_POSITION = 'b3BhcXVlIHRvIGNsaWVudHM';

/** The examples of a media type: a component, since several operations answer with the same type. */
export function answerExamples(builder: DocumentBuilder, type: GraphQLType): Record<string, Ref> {
  const inner = innermost(type);
  const name = isListOf(type) ? `${inner.name}s` : inner.name;
  const make = () => ({ value: valueOf(builder, '', { type, name } as Node) });
  return { [name]: builder.use('examples', name, make) };
}

/** The example of a stream of the entries of a list, as `rest/event_stream.ts` writes them. */
export function streamExamples(builder: DocumentBuilder, type: GraphQLType): Record<string, Ref> {
  const { name } = innermost(type);
  const make = () => {
    const { data } = valueOf(builder, '', { type, name } as Node) as { data: unknown[] };
    return { value: `retry: 1000\n\nid: ${STREAM_POSITION}\ndata: ${JSON.stringify(data[0])}\n\n` };
  };
  return { [`${name}Events`]: builder.use('examples', `${name}Events`, make) };
}

function valueOf(builder: DocumentBuilder, owner: string, node: Node): unknown {
  const own = exampleIn(specOf(builder.schema, node));
  if (own !== undefined) return own;
  const inner = innermost(node.type);
  if (isObjectType(inner)) {
    const example = objectOf(builder, inner);
    return isListOf(node.type) ? [example] : example;
  }
  const leaf = leafExample(builder, owner, node);
  if (leaf !== undefined) return leaf;
  if (!isNonNullType(node.type)) return null;
  if (isListOf(getNullableType(node.type) as GraphQLType)) return [];
  if (inner.name === 'ID') return undefined;
  throw new Error(`schema: ${owner}.${node.name} needs an example in @spec`);
}

function objectOf(builder: DocumentBuilder, type: GraphQLObjectType): Record<string, unknown> {
  const entries = shownFields(builder, type).map((field) => [field.name, valueOf(builder, type.name, field)] as const);
  const { type: kind, resource_type = kind } = Object.fromEntries(entries);
  const anyId = `${KIND_PREFIXES[String(resource_type)] ?? 'app'}_01h455vb4pex5vsknk084sn02q`;
  return Object.fromEntries(entries.map(([name, value]) => [name, value === undefined ? anyId : value]));
}
