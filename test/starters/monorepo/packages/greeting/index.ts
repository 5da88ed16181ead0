export const greet = (name: string): string => `Hello from the package greeting, ${name}`;
