// The parts of an OpenAPI 3.1 document that we write, as types.

/** A JSON Schema (2020-12) as OpenAPI 3.1 uses it. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  format?: string;
  pattern?: string;
  enum?: readonly (string | number)[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minProperties?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: false;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  /** Of a text: what is in it. */
  contentMediaType?: string;
  contentSchema?: Schema;
  discriminator?: { propertyName: string; mapping: Record<string, string> };
  deprecated?: boolean;
}

export interface Ref {
  $ref: string;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  description: string;
  required: boolean;
  style?: 'form';
  explode?: false;
  schema: Schema;
  example?: unknown;
}

export interface Header {
  description: string;
  required?: boolean;
  schema: Schema;
}

export interface Link {
  operationId: string;
  description: string;
  parameters: Record<string, string>;
}

export interface Response {
  description: string;
  headers?: Record<string, Header | Ref>;
  content?: Record<string, { schema: Schema; examples?: Record<string, Ref> }>;
  links?: Record<string, Link>;
}

export interface RequestBody {
  description?: string;
  required: boolean;
  content: { 'application/json': { schema: Schema; example: unknown } };
}

/** How an operation is called in a language, as documentation tools read it. */
export interface CodeSample {
  lang: string;
  label: string;
  source: string;
}

export interface OperationObject {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security: Record<string, string[]>[];
  'x-required-scope': string;
  /** Keys without `may_destroy` are refused. */
  'x-destroys'?: true;
  /** How what it destroyed is brought back. */
  'x-reversible-by'?: 'bin' | 'activity';
  /** Beyond the specification. */
  'x-extension'?: true;
  'x-codeSamples': CodeSample[];
  parameters?: (Parameter | Ref)[];
  requestBody?: RequestBody;
  responses: Record<string, Response | Ref>;
}

/** A way to log in. OpenAPI 3.1 has no name for the flow of devices. */
export type SecurityScheme =
  | { type: 'http'; scheme: 'bearer'; description: string }
  | {
      type: 'oauth2';
      description: string;
      flows: { authorizationCode: OAuthFlow; 'x-deviceAuthorization': OAuthFlow };
      'x-oauth2MetadataUrl': string;
    };

interface OAuthFlow {
  authorizationUrl?: string;
  deviceAuthorizationUrl?: string;
  tokenUrl: string;
  refreshUrl: string;
  scopes: Record<string, string>;
}

export interface Components {
  examples: Record<string, { value: unknown }>;
  schemas: Record<string, Schema>;
  parameters: Record<string, Parameter>;
  headers: Record<string, Header>;
  responses: Record<string, Response>;
  securitySchemes: Record<string, SecurityScheme>;
}

export interface Tag {
  name: string;
  description: string;
  /** All operations of the tag are beyond the specification. */
  'x-extension'?: true;
}

export interface OpenApiDocument {
  openapi: '3.1.0';
  info: {
    title: string;
    version: string;
    summary: string;
    description: string;
    contact: { name: string; url: string };
    license: { name: string; identifier: string };
  };
  servers: { url: string; description: string }[];
  security: Record<string, string[]>[];
  tags: Tag[];
  paths: Record<string, Record<string, OperationObject>>;
  components: Components;
}
