// Writes the types that queries are checked with, src/api/schema.d.ts: what `gql.tada generate output` writes, which
// would need a TypeScript of version 5 beside that of the project.
import { minifyIntrospection, outputIntrospectionFile } from '@gql.tada/internal';
import { buildSchema, introspectionFromSchema } from 'graphql';
import * as fs from 'node:fs';
import * as path from 'node:path';

const SCHEMA = path.join(import.meta.dirname, '../../test/golden/schema.graphql');
const OUTPUT = path.join(import.meta.dirname, 'src/api/schema.d.ts');

const introspection = introspectionFromSchema(buildSchema(fs.readFileSync(SCHEMA, 'utf8')));
const settings = { fileType: '.d.ts', shouldPreprocess: true };
fs.writeFileSync(OUTPUT, outputIntrospectionFile(minifyIntrospection(introspection), settings));
