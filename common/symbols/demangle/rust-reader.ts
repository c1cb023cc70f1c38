/** Characters of a Rust v0 name. Places of back references count from behind the `_R`. */
import { NotDemangled } from './output.ts';
import { decodePunycode } from './punycode.ts';

export class RustReader {
  readonly source: string;
  at = 0;

  constructor(source: string) {
    this.source = source;
  }

  peek(): string {
    return this.source[this.at] ?? '';
  }

  next(): string {
    const char = this.source[this.at++];
    if (char === undefined) throw new NotDemangled('too short');
    return char;
  }

  take(expected: string): boolean {
    if (this.source[this.at] !== expected) return false;
    this.at++;
    return true;
  }

  /** `_` is 0, `0_` is 1, …, in digits 0-9a-zA-Z. */
  base62(): number {
    if (this.take('_')) return 0;
    let value = 0;
    while (!this.take('_')) {
      const char = this.next();
      const digit = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'.indexOf(char);
      if (digit < 0) throw new NotDemangled('no number');
      value = value * 62 + digit;
    }
    return value + 1;
  }

  /** 0 where the tag is not there. */
  optional(tag: string): number {
    return this.take(tag) ? this.base62() + 1 : 0;
  }

  identifier(): string {
    const isUnicode = this.take('u');
    const digits = /^(0|[1-9]\d{0,4})/.exec(this.source.slice(this.at, this.at + 5))?.[0];
    if (digits === undefined) throw new NotDemangled('no identifier');
    this.at += digits.length;
    this.take('_');
    const text = this.source.slice(this.at, this.at + Number(digits));
    if (text.length < Number(digits)) throw new NotDemangled('too short');
    this.at += text.length;
    return isUnicode ? decodePunycode(text) : text;
  }

  /** Hexadecimal digits up to a `_`. */
  hex(): string {
    const start = this.at;
    while (/[0-9a-f]/.test(this.peek())) this.at++;
    const text = this.source.slice(start, this.at);
    if (!this.take('_')) throw new NotDemangled('no number');
    return text;
  }
}
