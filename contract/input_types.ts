// How input types are named: a verb, the kind, `Input`.
const INPUT_TYPE = /^(?:Create|Add|Update|Set|Move|Scale)?([A-Z]\w*?)(?:Input)?$/;

/** The kind that an input type is about, `Volume` of `CreateVolumeInput`; the type itself where it is none. */
export function kindOfType(name: string): string {
  return INPUT_TYPE.exec(name)?.[1] ?? name;
}
