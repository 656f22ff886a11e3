"""300 common English first names: 150 male and 150 female, without overlap."""

import numpy as np

_MALE = """
Aaron Abraham Adam Adrian Alan Albert Alexander Alfred Andrew Anthony Arnold Arthur Barry Benjamin
Bernard Bradley Brandon Brian Bruce Bryan Caleb Calvin Carl Cecil Cedric Chester Christopher
Clarence Clifford Clyde Connor Craig Curtis Cyril Daniel David Dennis Derek Donald Douglas Duncan
Dwight Edgar Edmund Edward Edwin Elijah Eric Ernest Ethan Eugene Felix Floyd Franklin Frederick
Gareth Gary George Gerald Gilbert Gordon Graham Gregory Harold Harvey Hector Henry Herbert Herman
Horace Howard Hubert Hugo Ian Isaac Ivan Jack Jacob James Jason Jeffrey Jeremy Jerome Joel John
Jonathan Joseph Joshua Julian Justin Keith Kenneth Kevin Lawrence Leonard Leroy Lewis Liam Lloyd
Louis Lucas Luke Malcolm Marcus Mario Martin Matthew Maurice Michael Milton Mitchell Nathan Neil
Nicholas Noah Norman Oliver Oscar Owen Patrick Paul Peter Philip Ralph Raymond Richard Robert
Roderick Roger Roland Ronald Russell Samuel Sebastian Simon Stanley Stephen Steven Stuart Theodore
Thomas Timothy Trevor Victor Vincent Walter Warren Wayne Wilfred William
"""
_FEMALE = """
Abigail Adele Agnes Alice Alicia Amanda Amelia Amy Andrea Angela Anita Anna Barbara Beatrice Beth
Betty Beverly Brenda Bridget Camille Carmen Carol Caroline Catherine Cecilia Celia Charlotte
Cheryl Christina Christine Clara Claudia Constance Cynthia Deborah Denise Diana Donna Dora Doris
Dorothy Edith Edna Eileen Elaine Eleanor Elizabeth Ella Ellen Elsie Emily Emma Erica Esther Ethel
Eva Evelyn Fiona Florence Frances Gemma Georgina Geraldine Gladys Gloria Hannah Harriet Hazel
Heather Helen Hilda Ida Irene Isabel Jacqueline Janet Janice Jennifer Jessica Joan Joanna
Josephine Judith Julia June Karen Katherine Kathleen Laura Lauren Lillian Linda Lisa Louise Lucy
Lydia Mabel Margaret Maria Marian Marilyn Marjorie Martha Mary Maureen Megan Melissa Miranda Molly
Monica Muriel Nancy Naomi Natalie Nora Olive Olivia Pamela Patricia Paula Pauline Penelope Phoebe
Phyllis Rachel Rebecca Rita Rosalind Rosemary Ruth Sandra Sarah Sharon Sheila Shirley Sophia
Stella Susan Sylvia Teresa Valerie Vanessa Vera Veronica Victoria Virginia Vivian Wendy Winifred
Yvonne
"""
# Names by gender, [2][150].
NAMES = (tuple(_MALE.split()), tuple(_FEMALE.split()))
NAMES_PER_GENDER = len(NAMES[0])


def names_of(gender: np.ndarray, name: np.ndarray) -> list[list[str]]:
    """Returns the names of the people of each story, by their gender [B, N], -1 for padding, which
    follows the people, and an index into the names of that gender [B, N]."""
    return [
        [NAMES[g][i] for g, i in zip(genders, indices, strict=True) if g >= 0]
        for genders, indices in zip(gender.tolist(), name.tolist(), strict=True)
    ]
