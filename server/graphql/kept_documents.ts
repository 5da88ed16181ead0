// Parsed and validated documents, for queries that come again. Apollo's own store counts 30 MiB of JSON: 130 MB of
// memory for whoever sends texts that are never the same.
import type { DocumentNode } from 'graphql';

interface DocumentStore {
  get(key: string): Promise<DocumentNode | undefined>;
  set(key: string, document: DocumentNode): Promise<void>;
  delete(key: string): Promise<boolean>;
}

/** Of text, in characters: a document takes about 32 bytes of memory for each. */
const TEXT_MAX = 256 * 1024;

/** The `documentStore` of an Apollo Server: keeps what was used last, up to a sum of the texts in characters. */
export function keptDocuments(textMax = TEXT_MAX): DocumentStore {
  // In the order of their last use.
  const kept = new Map<string, DocumentNode>();
  let total = 0;
  const drop = (key: string): DocumentNode | undefined => {
    const document = kept.get(key);
    if (document && kept.delete(key)) total -= lengthOf(document);
    return document;
  };
  const keep = (key: string, document: DocumentNode): void => {
    drop(key);
    kept.set(key, document);
    total += lengthOf(document);
    while (total > textMax) drop(kept.keys().next().value as string);
  };
  return {
    async get(key) {
      const document = kept.get(key);
      if (document) keep(key, document);
      return document;
    },
    set: async (key, document) => keep(key, document),
    delete: async (key) => drop(key) !== undefined,
  };
}

const lengthOf = ({ loc }: DocumentNode): number => loc?.source.body.length ?? 0;
