<?php
function from_included(): void
{
    burn();
}

from_included();
