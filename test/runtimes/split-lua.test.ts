import { eachOf } from '../support/each-of.ts';
import { itKeepsTheSplit } from './split.ts';
import { SPLIT_CASES } from './split-cases.ts';

eachOf(SPLIT_CASES.lua)('30 % and 70 % in $title', itKeepsTheSplit);
